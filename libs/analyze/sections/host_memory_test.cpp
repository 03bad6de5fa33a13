#include <gtest/gtest.h>

#include <gmock/gmock.h>
#include <algorithm>

#include "analyze/sections/host_memory.h"

namespace llmprof::analyze {

namespace {

using testing::ElementsAre;

// "time:bytes"
std::vector<std::string> texts(const std::vector<MemoryPoint>& points) {
  std::vector<std::string> out;
  for (const MemoryPoint& point : points) {
    out.push_back(std::to_string(point.ts_ns) + ":" + std::to_string(point.rss_bytes));
  }
  return out;
}

TEST(MemoryOfAll, AddsUpWhoIsAlive) {
  const std::vector<MemoryReading> readings{{1, 0, 100, 7}, {2, 1, 50, 8},   {1, 10, 110, 7},
                                            {2, 11, 60, 8}, {1, 20, 120, 7}, {1, 40, 90, 7}};
  // Process 2 was last read at 11 and counts until 11 + 2 periods of 10.
  EXPECT_THAT(texts(memory_of_all(readings, {{1, 10}, {2, 10}})),
              ElementsAre("0:100", "1:150", "10:160", "11:170", "20:180", "31:120", "40:90"));
}

TEST(MemoryOfAll, AProcessThatEndedHasNone) {
  const std::vector<MemoryReading> readings{{1, 0, 100, 7}, {2, 1, 50, 8}, {2, 5, 0, 8}, {1, 10, 100, 7}};
  EXPECT_THAT(texts(memory_of_all(readings, {{1, 10}, {2, 4}})), ElementsAre("0:100", "1:150", "5:100", "10:100"));
}

TEST(MemoryOfAll, AnImageReplacesTheOneBeforeIt) {
  const std::vector<MemoryReading> readings{{1, 0, 100, 7}, {1, 10, 100, 7}, {2, 20, 30, 7}};
  EXPECT_THAT(texts(memory_of_all(readings, {{1, 10}})), ElementsAre("0:100", "10:100", "20:30"));
}

TEST(Thinned, KeepsTheExtremes) {
  std::vector<MemoryPoint> points;
  for (std::int64_t i = 0; i < 1000; ++i) points.push_back({i, 500});
  points[123].rss_bytes = 9000;
  points[777].rss_bytes = 1;
  const std::vector<MemoryPoint> kept = thinned(points, 20);
  EXPECT_LE(kept.size(), 20u);
  EXPECT_TRUE(std::any_of(kept.begin(), kept.end(), [](auto& p) { return p.ts_ns == 123 && p.rss_bytes == 9000; }));
  EXPECT_TRUE(std::any_of(kept.begin(), kept.end(), [](auto& p) { return p.ts_ns == 777 && p.rss_bytes == 1; }));
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end(), [](auto& a, auto& b) { return a.ts_ns < b.ts_ns; }));
  EXPECT_EQ(texts(thinned({{1, 2}, {3, 4}}, 20)).size(), 2u);
}

// Readings of process 1 every 10: 100, 100, 300, 300, 250, 250.
const std::vector<MemoryReading> kReadings{{1, 0, 100, 7},  {1, 10, 100, 7}, {1, 20, 300, 7},
                                           {1, 30, 300, 7}, {1, 40, 250, 7}, {1, 50, 250, 7}};
const Periods kPeriods{{1, 10}};

std::vector<std::int64_t> selves(const std::vector<MemoryRange>& ranges) {
  std::vector<std::int64_t> out;
  for (const GainOfRange& gain : gains_of(ranges, kReadings, kPeriods)) out.push_back(gain.self_bytes);
  return out;
}

TEST(Gains, OuterRangesKeepWhatInnerOnesDidNotGain) {
  const MemoryRange outer{.process_id = 1, .thread_id = 1, .begin_ns = 1, .end_ns = 49};     // 250 - 100 = 150
  const MemoryRange alloc{.process_id = 1, .thread_id = 1, .begin_ns = 9, .end_ns = 26};     // 300 - 100 = 200
  const MemoryRange release{.process_id = 1, .thread_id = 1, .begin_ns = 31, .end_ns = 44};  // 250 - 300 = -50
  EXPECT_THAT(selves({outer, alloc, release}), ElementsAre(0, 200, -50));
  EXPECT_THAT(selves({outer, alloc}), ElementsAre(-50, 200));
  EXPECT_THAT(selves({outer}), ElementsAre(150));
}

TEST(Gains, AreOfTheirOwnThreadAndProcess) {
  const MemoryRange outer{.process_id = 1, .thread_id = 1, .begin_ns = 1, .end_ns = 49};
  const MemoryRange other_thread{.process_id = 1, .thread_id = 2, .begin_ns = 9, .end_ns = 26};
  const MemoryRange other_process{.process_id = 2, .thread_id = 3, .begin_ns = 9, .end_ns = 26};  // was never read
  EXPECT_THAT(selves({outer, other_thread, other_process}), ElementsAre(150, 200));
}

TEST(Gains, NeedAReadingAtBothEnds) {
  EXPECT_THAT(selves({{.process_id = 1, .thread_id = 1, .begin_ns = 1, .end_ns = 61}}), ElementsAre());
  EXPECT_THAT(selves({{.process_id = 1, .thread_id = 1, .begin_ns = 1, .end_ns = 60}}), ElementsAre(150));
}

TEST(Gains, TheEndOfTheProcessIsNoGain) {
  std::vector<MemoryReading> readings = kReadings;
  readings.push_back({1, 52, 0, 7});
  const auto gains = gains_of({{.process_id = 1, .thread_id = 1, .begin_ns = 1, .end_ns = 52}}, readings, kPeriods);
  ASSERT_EQ(gains.size(), 1u);
  EXPECT_EQ(gains[0].self_bytes, 150);
}

TEST(Gains, RangesThatOnlyOverlapAreNotInside) {
  const MemoryRange first{.process_id = 1, .thread_id = 1, .begin_ns = 1, .end_ns = 26};   // 200
  const MemoryRange second{.process_id = 1, .thread_id = 1, .begin_ns = 9, .end_ns = 49};  // 150
  EXPECT_THAT(selves({first, second}), ElementsAre(200, 150));
}

}  // namespace

}  // namespace llmprof::analyze
