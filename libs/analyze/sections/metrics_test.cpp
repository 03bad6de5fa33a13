#include <gtest/gtest.h>

#include <limits>

#include "analyze/sections/sections.h"

namespace llmprof::analyze {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// 10 values up to 0.1, 40 up to 0.5, 50 in all; by hand.
TEST(Metrics, quantilesAreInterpolatedInTheirBucket) {
  const std::vector<Bucket> buckets = {{0.1, 10}, {0.5, 40}, {kInfinite, 50}};
  const MetricQuantile median = quantile_of(buckets, 0.5);  // the 25th: 15 of the 30 between 0.1 and 0.5
  EXPECT_DOUBLE_EQ(median.value_s, 0.3);
  EXPECT_DOUBLE_EQ(median.low_s, 0.1);
  EXPECT_DOUBLE_EQ(*median.high_s, 0.5);
  const MetricQuantile low = quantile_of(buckets, 0.1);  // the 5th: half of the first bucket, which begins at 0
  EXPECT_DOUBLE_EQ(low.value_s, 0.05);
  const MetricQuantile high = quantile_of(buckets, 0.99);  // beyond the last bound
  EXPECT_DOUBLE_EQ(high.low_s, 0.5);
  EXPECT_FALSE(high.high_s);
}

TEST(Metrics, quantilesOfNothingAndOfOddBuckets) {
  EXPECT_FALSE(quantile_of({}, 0.5).high_s);
  EXPECT_DOUBLE_EQ(*quantile_of({{0.1, 0}, {0.5, 4}, {1, 4}}, 0.5).high_s, 0.5);  // empty buckets are passed over
  EXPECT_FALSE(quantile_of({{kInfinite, 3}}, 0.5).high_s);
}

TEST(Allocator, aCurveHasTheValueOfItsLastPoint) {
  const std::vector<MemoryPoint> points = {{10, 5}, {20, 7}, {20, 9}};
  EXPECT_FALSE(value_at(points, 9));
  EXPECT_EQ(value_at(points, 10), 5);
  EXPECT_EQ(value_at(points, 20), 9);
  EXPECT_EQ(value_at(points, 99), 9);
}

}  // namespace

}  // namespace llmprof::analyze
