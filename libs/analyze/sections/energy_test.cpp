#include <gtest/gtest.h>

#include <gmock/gmock.h>

#include "analyze/sections/energy.h"
#include "analyze/sections/sections.h"

namespace llmprof::analyze {

namespace {

constexpr std::int64_t kMs = 1'000'000;

// 100 W for a second, then 300 W for a second, read every 100 ms.
Series counter() {
  Series series;
  for (int i = 0; i <= 20; ++i) series.push_back({i * 100 * kMs, i <= 10 ? 10.0 * i : 100 + 30.0 * (i - 10)});
  return series;
}

TEST(Energy, OfACounterIsTheDifference) {
  const EnergySegments energy = segments_of_counter(counter());
  EXPECT_EQ(energy.segments.size(), 20u);
  EXPECT_EQ(energy.blur_ns, 100 * kMs);
  const EnergyOver all = energy_over(energy, {{0, 2000 * kMs}});
  EXPECT_NEAR(all.joules, 400, 1e-9);
  EXPECT_EQ(all.covered_ns, 2000 * kMs);
  // Between readings the power is even: half of a segment of 10 J and half of one of 30 J.
  EXPECT_NEAR(energy_over(energy, {{950 * kMs, 1050 * kMs}}).joules, 5 + 15, 1e-9);
  EXPECT_NEAR(energy_over(energy, {{0, 100 * kMs}, {1900 * kMs, 2000 * kMs}}).joules, 10 + 30, 1e-9);
}

// The swing is 300 - 100 W and an edge may be wrong by half of 100 ms: 10 J; two edges: 10 J * sqrt(2).
TEST(Energy, TheErrorComesFromTheEdges) {
  const EnergySegments energy = segments_of_counter(counter());
  EXPECT_NEAR(energy_over(energy, {{300 * kMs, 1300 * kMs}}).error_j, 14.142, 0.001);
  // Two windows 20 ms apart: the inner edges may be wrong by half of the gap only, 2 J each: sqrt(100 + 4 + 4 + 100).
  const EnergyOver two = energy_over(energy, {{300 * kMs, 790 * kMs}, {810 * kMs, 1300 * kMs}});
  EXPECT_NEAR(two.error_j, 14.422, 0.001);
  // Even power has no error.
  Series even;
  for (int i = 0; i <= 20; ++i) even.push_back({i * 100 * kMs, 10.0 * i});
  EXPECT_NEAR(energy_over(segments_of_counter(even), {{300 * kMs, 1300 * kMs}}).error_j, 0, 1e-6);
}

// A counter that moves every 200 ms but is read every 100 ms cannot tell what happened in between.
TEST(Energy, ACounterThatMovesSlowlyBlursMore) {
  Series slow;
  for (int i = 0; i <= 20; ++i) slow.push_back({i * 100 * kMs, 20.0 * (i / 2)});
  EXPECT_EQ(segments_of_counter(slow).blur_ns, 200 * kMs);
}

TEST(Energy, ACounterThatStartsAgainLosesOneSegmentOnly) {
  Series series = counter();
  for (std::size_t i = 11; i < series.size(); ++i) series[i].value -= 100;  // the driver was reloaded
  const EnergyOver all = energy_over(segments_of_counter(series), {{0, 2000 * kMs}});
  EXPECT_EQ(all.covered_ns, 1900 * kMs);
  EXPECT_NEAR(all.joules, 370, 1e-9);
}

TEST(Energy, APauseOfTheReaderIsNotCovered) {
  const EnergySegments energy = segments_of_counter({{0, 0}, {100 * kMs, 10}, {9100 * kMs, 1000}, {9200 * kMs, 1010}});
  const EnergyOver all = energy_over(energy, {{0, 9200 * kMs}});
  EXPECT_EQ(all.covered_ns, 200 * kMs);
  EXPECT_NEAR(all.joules, 20, 1e-9);
}

TEST(Energy, OfPowerIsAddedUp) {
  const EnergySegments energy = segments_of_power({{0, 100}, {100 * kMs, 300}, {200 * kMs, 300}});
  EXPECT_NEAR(energy_over(energy, {{0, 200 * kMs}}).joules, 20 + 30, 1e-9);
}

TEST(Energy, NothingFromNothing) {
  for (const Series& series : {Series{}, Series{{5, 1}}}) {
    const EnergyOver none = energy_over(segments_of_counter(series), {{0, 10}});
    EXPECT_EQ(none.covered_ns, 0);
    EXPECT_EQ(none.joules, 0);
  }
  EXPECT_EQ(energy_over(segments_of_counter(counter()), {}).error_j, 0);
}

TEST(DeviceMemory, FreeingComesBeforeAllocatingAtTheSameTime) {
  const auto points = allocated_over_time({{10, 100}, {20, -100}, {20, 70}, {30, -70}});
  std::vector<std::int64_t> bytes;
  for (const MemoryPoint& point : points) bytes.push_back(point.rss_bytes);
  EXPECT_THAT(bytes, testing::ElementsAre(100, 0, 70, 0));
}

}  // namespace

}  // namespace llmprof::analyze
