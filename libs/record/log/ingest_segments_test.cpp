// Logs that continue each other: a process that keeps only its end cuts its log into segments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/testing/recording.h"

namespace llmprof::record {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The logs of a process that was told to keep only its end. Times are kBegin + …; the second log begins at 500.
constexpr std::uint64_t kCut = kBegin + 500;

std::string first_segment() {
  LogBuilder log(77, 1, kBegin);
  log.process({.ts_ns = kBegin, .pid = 77, .start_ticks = 1}, "/usr/bin/python3", "python3");
  log.thread(1, 77, "main", kBegin + 10);
  log.push(1, kBegin + 100, "outer");
  log.push(1, kBegin + 200, "early");
  log.pop(1, kBegin + 300);
  log.push(1, kBegin + 400, "middle");
  log.range(1, wire::RangeOp::kStart, kBegin + 450, "started", {.correlation = 9});
  log.loss(wire::LossKind::kBufferFull, 3);
  return log.bytes();
}

// Says again whose it is, what was lost and what is open; then goes on.
std::string second_segment() {
  LogBuilder log(77, 1, kCut, 1);
  log.process({.ts_ns = kBegin, .pid = 77, .start_ticks = 1}, "/usr/bin/python3", "python3");
  wire::Record segment = LogBuilder::make(wire::RecordKind::kSegment);
  segment.segment = {kCut, 1};
  log.add(0, {segment});
  wire::Record loss = LogBuilder::make(wire::RecordKind::kLoss);
  loss.loss = {.ts_ns = kCut, .count = 3, .detail = 0, .kind = wire::LossKind::kBufferFull};
  log.add(0, {loss});
  loss.loss.ts_ns = kCut + 10;
  loss.loss.count = 2;
  log.add(0, {loss});
  log.thread(1, 77, "main", kBegin + 10);
  log.push(1, kBegin + 100, "outer");
  log.push(1, kBegin + 400, "middle");
  log.range(1, wire::RangeOp::kStart, kBegin + 450, "started", {.correlation = 9});
  log.pop(1, kBegin + 600);
  log.push(1, kBegin + 650, "late");
  log.pop(1, kBegin + 700);
  log.range(1, wire::RangeOp::kEnd, kBegin + 750, "", {.correlation = 9});
  log.pop(1, kBegin + 800);
  log.process({.ts_ns = kBegin + 900, .pid = 77, .start_ticks = 1, .ended = 1}, "/usr/bin/python3", "python3");
  return log.bytes();
}

const char* const kRanges =
    "SELECT name, begin_ns - 1000000, end_ns - 1000000, depth, closed FROM range ORDER BY begin_ns";

TEST(Ingest, LogsThatContinueEachOtherAreOneProcess) {
  Recording recording;
  recording.info(info_of(77)).log("h-77-1-0.1.log", second_segment()).log("h-77-1-0.log", first_segment());
  EXPECT_THAT(recording.rows(kRanges),
              ElementsAre("outer|100|800|0|true", "early|200|300|1|true", "middle|400|600|1|true",
                          "started|450|750|2|true", "late|650|700|1|true"));
  EXPECT_THAT(recording.rows("SELECT count(*) FROM process"), ElementsAre("1"));
  EXPECT_THAT(recording.rows("SELECT count(*) FROM thread"), ElementsAre("1"));
  EXPECT_THAT(recording.rows("SELECT name, count FROM loss"), ElementsAre("buffer_full|5"));
}

TEST(Ingest, ALogWhosePredecessorsWereDeletedStandsOnItsOwn) {
  Recording recording;
  recording.info(info_of(77)).log("h-77-1-0.1.log", second_segment());
  EXPECT_THAT(recording.rows(kRanges), ElementsAre("outer|100|800|0|true", "middle|400|600|1|true",
                                                   "started|450|750|2|true", "late|650|700|1|true"));
  EXPECT_THAT(recording.rows("SELECT name, count FROM loss ORDER BY name"),
              ElementsAre("buffer_full|5", "segments_dropped|1"));
}

TEST(Ingest, WhatEndedBeforeTheKeptEndIsLeftOut) {
  CaptureInfo info = info_of(77);
  info.last_ns = info.end->raw_ns - (static_cast<std::int64_t>(kBegin) + 650);  // keeps what ended at 650 or later
  info.window = "the last bit";
  Recording recording;
  recording.info(info).log("h-77-1-0.log", first_segment()).log("h-77-1-0.1.log", second_segment());
  EXPECT_THAT(recording.rows(kRanges),
              ElementsAre("outer|100|800|0|true", "started|450|750|2|true", "late|650|700|1|true"));
  EXPECT_THAT(recording.rows("SELECT name, count FROM loss ORDER BY name"),
              ElementsAre("buffer_full|5", "outside_window|4"));  // two ranges, two events each
  EXPECT_EQ(recording.run().info().window, "the last bit");
}

TEST(Ingest, CostBecomesRows) {
  CaptureInfo info = info_of(77);
  info.range_event_ns = 20.5;
  info.recorder_cpu_ns = 12345;
  LogBuilder log(77);
  wire::Record cost = LogBuilder::make(wire::RecordKind::kCost);
  cost.cost = {.ts_ns = kBegin + 5, .range_events = 7, .gemm_events = 2, .log_bytes = 300, .writer_cpu_ns = 4000};
  log.add(0, {cost});
  Recording recording;
  recording.info(info).log("h-77-1-0.log", log.bytes());
  EXPECT_THAT(recording.rows("SELECT range_events, gemm_events, log_bytes, writer_cpu_ns, range_event_ns, "
                             "gemm_event_ns FROM collector_cost"),
              ElementsAre("7|2|300|4000|20.500000|-"));
  EXPECT_EQ(recording.run().info().recorder_cpu_ns, 12345);
}

}  // namespace
}  // namespace llmprof::record
