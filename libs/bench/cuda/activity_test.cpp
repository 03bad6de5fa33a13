#include "bench/cuda/activity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmprof::bench::cuda {
namespace {

using testing::ElementsAre;

constexpr const char* kMarker = "llmprof_timing_marker";

Activity record(std::uint32_t correlation, const char* name, std::uint64_t begin, std::uint64_t end) {
  return {.begin_ns = begin, .end_ns = end, .correlation = correlation, .name = name};
}

TEST(Activity, RecordsBetweenMarkersAreOneCall) {
  // Out of order, as buffers of several threads or streams come. Ids between them belong to calls without records.
  const auto calls =
      calls_of({record(30, "split_k", 1900, 2000), record(5, kMarker, 100, 200), record(29, "[memset]", 1500, 1600),
                record(9, "_Z4gemmPf", 1000, 1250), record(20, kMarker, 1300, 1400), record(21, "gemm", 1600, 1850),
                record(40, "llmprof_timing_stamp", 2100, 2200)},
               2);
  ASSERT_TRUE(calls) << calls.error().message;
  ASSERT_EQ(calls->size(), 2u);
  EXPECT_DOUBLE_EQ(calls->at(0).seconds, 250e-9);  // 1250 - 1000
  EXPECT_THAT(calls->at(0).kernels, ElementsAre("gemm(float*)"));
  // 100 of the memset, 250 and 100 of the kernels; the gap of 50 between these is nobody's.
  EXPECT_DOUBLE_EQ(calls->at(1).seconds, 450e-9);
  EXPECT_THAT(calls->at(1).kernels, ElementsAre("gemm", "[memset]", "split_k"));
}

TEST(Activity, WhatOverlapsCountsOnce) {
  // Kernels of two streams: [100, 400) and [300, 600) is 500, and [350, 380) inside is nothing more.
  const auto calls = calls_of(
      {record(1, kMarker, 10, 20), record(2, "a", 100, 400), record(3, "b", 300, 600), record(4, "c", 350, 380)}, 1);
  ASSERT_TRUE(calls);
  EXPECT_DOUBLE_EQ(calls->at(0).seconds, 500e-9);
}

TEST(Activity, OtherServiceKernelsEndACall) {
  const auto calls =
      calls_of({record(1, "llmprof_timing_wait", 1, 2), record(2, kMarker, 10, 20), record(3, "a", 100, 400),
                record(4, "llmprof_timing_flush", 500, 600), record(5, kMarker, 610, 620), record(6, "a", 700, 900)},
               2);
  ASSERT_TRUE(calls);
  EXPECT_DOUBLE_EQ(calls->at(0).seconds, 300e-9);
  EXPECT_DOUBLE_EQ(calls->at(1).seconds, 200e-9);
}

TEST(Activity, MissingRecordsAreAnError) {
  EXPECT_EQ(calls_of({record(1, kMarker, 10, 20), record(2, "a", 100, 400)}, 2).error().message,
            "CUPTI saw 1 of 2 calls");
  EXPECT_EQ(calls_of({}, 1).error().message, "CUPTI saw 0 of 1 calls");
  EXPECT_EQ(
      calls_of({record(1, kMarker, 10, 20), record(2, kMarker, 30, 40), record(3, "a", 50, 60)}, 2).error().message,
      "CUPTI saw no kernel in call 1 of a batch");
}

TEST(Activity, LostTimesAreAnErrorAndNotZero) {
  EXPECT_EQ(calls_of({record(1, kMarker, 10, 20), record(2, "_Z4gemmPf", 0, 0)}, 1).error().message,
            "CUPTI lost the times of gemm(float*)");
  EXPECT_FALSE(calls_of({record(1, kMarker, 10, 20), record(2, "a", 9, 9)}, 1));
}

}  // namespace
}  // namespace llmprof::bench::cuda
