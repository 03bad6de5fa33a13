#include "bench/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace llmprof::bench {
namespace {

std::vector<double> one_to(int count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

TEST(Statistics, ByHand) {
  const Statistics s = statistics(std::vector<double>{2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(s.count, 8u);
  EXPECT_DOUBLE_EQ(s.mean, 5);
  EXPECT_DOUBLE_EQ(s.median, 4.5);
  EXPECT_DOUBLE_EQ(s.min, 2);
  EXPECT_DOUBLE_EQ(s.max, 9);
  EXPECT_DOUBLE_EQ(s.deviation, std::sqrt(32.0 / 7));  // squares: 9 1 1 1 0 0 4 16
  EXPECT_DOUBLE_EQ(s.p5, 2.7);                         // position 0.35: 2 + 0.35 * 2
  EXPECT_DOUBLE_EQ(s.p95, 8.3);                        // position 6.65: 7 + 0.65 * 2
  EXPECT_DOUBLE_EQ(s.p99, 8.86);                       // position 6.93: 7 + 0.93 * 2
}

TEST(Statistics, OneSample) {
  const Statistics s = statistics(std::vector<double>{3});
  EXPECT_EQ(s.median, 3);
  EXPECT_EQ(s.p99, 3);
  EXPECT_EQ(s.deviation, 0);
  EXPECT_EQ(s.low, 3);
  EXPECT_EQ(s.high, 3);
}

TEST(Statistics, IntervalOfTheMedianByTheBinomial) {
  // 5: even min to max holds it with 1 - 2 / 32 = 94 % only. 6: 1 - 2 / 64 = 97 %.
  // 10: 1 + 10 of 1024 cases on one side are 1.1 %, 1 + 10 + 45 are 5.5 %: the second to the ninth.
  // 100: the 40th to the 61st, as tables have it. 1000: 500 - 0.98 * 31.6 = 469 below: the 470th.
  for (const auto& [count, low] : {std::pair{5, 1}, {6, 1}, {10, 2}, {100, 40}, {1000, 470}}) {
    const Statistics s = statistics(one_to(count));
    EXPECT_EQ(s.low, low) << count;
    EXPECT_EQ(s.high, count + 1 - low) << count;
  }
}

TEST(Comparison, MannWhitneyAsInTextbooks) {
  // U = 17 of 5 * 4 = 20; mean 10, variance 20 / 12 * 10 = 16.67; z = (7 - 0.5) / 4.082 = 1.592; p = 0.1113.
  const std::vector<double> a{19, 22, 16, 29, 24}, b{20, 11, 17, 12};
  EXPECT_NEAR(compare(a, b).p, 0.11134688653314041, 1e-12);
  EXPECT_NEAR(compare(b, a).p, 0.11134688653314041, 1e-12);
}

TEST(Comparison, MannWhitneyWithTies) {
  // Ranks: 1 is 1, three 2s are 3 each, two 3s 5.5 each, 4 is 7, 5 is 8. Sum of a (1, 2, 2, 3): 12.5, so U = 2.5.
  // Ties: 27 - 3 + 8 - 2 = 30. Variance: 16 / 12 * (9 - 30 / 56) = 11.286. z = (8 - 2.5 - 0.5) / 3.359 = 1.488.
  const std::vector<double> a{1, 2, 2, 3}, b{2, 3, 4, 5};
  EXPECT_NEAR(compare(a, b).p, std::erfc(5 / std::sqrt(16.0 / 12 * (9 - 30.0 / 56)) / std::sqrt(2.0)), 1e-12);
  EXPECT_NEAR(compare(a, b).p, 0.1367, 1e-4);
}

TEST(Comparison, EqualGroupsDoNotDiffer) {
  const std::vector<double> same(20, 7.0);
  const Comparison c = compare(same, same);
  EXPECT_EQ(c.ratio, 1);
  EXPECT_EQ(c.low, 1);
  EXPECT_EQ(c.high, 1);
  EXPECT_EQ(c.p, 1);
}

TEST(Comparison, TwiceAsSlowIsSeen) {
  std::vector<double> a, b;
  for (int i = 0; i < 50; ++i) {
    a.push_back(100 + i % 7);
    b.push_back(2 * a.back());
  }
  const Comparison c = compare(a, b);
  EXPECT_DOUBLE_EQ(c.ratio, 2);
  EXPECT_LT(c.low, 2);
  EXPECT_GT(c.low, 1.9);
  EXPECT_GT(c.high, 2);
  EXPECT_LT(c.high, 2.1);
  EXPECT_LT(c.p, 1e-10);
}

TEST(Comparison, IntervalOfTheRatioByHand) {
  // Of ten samples the second to the ninth: 2 to 9 and 20 to 90; half widths of the logarithms ln(4.5) / 2 = 0.752
  // both.
  std::vector<double> a = one_to(10), b = one_to(10);
  for (double& value : b) value *= 10;
  const double factor = std::exp(std::sqrt(2.0) * std::log(4.5) / 2);
  const Comparison c = compare(a, b);
  EXPECT_DOUBLE_EQ(c.ratio, 10);
  EXPECT_NEAR(c.low, 10 / factor, 1e-9);
  EXPECT_NEAR(c.high, 10 * factor, 1e-9);
}

TEST(Adjusted, BenjaminiHochbergByHand) {
  // Sorted 0.01 0.02 0.03 0.04 times 4/1 4/2 4/3 4/4: all 0.04.
  EXPECT_EQ(adjusted(std::vector<double>{0.04, 0.01, 0.03, 0.02}), (std::vector<double>{0.04, 0.04, 0.04, 0.04}));
  // 0.001 * 3 = 0.003; 0.5 * 3 / 2 = 0.75; 0.9.
  const std::vector<double> mixed = adjusted(std::vector<double>{0.9, 0.001, 0.5});
  EXPECT_DOUBLE_EQ(mixed[0], 0.9);
  EXPECT_DOUBLE_EQ(mixed[1], 0.003);
  EXPECT_DOUBLE_EQ(mixed[2], 0.75);
  EXPECT_TRUE(adjusted({}).empty());
}

}  // namespace
}  // namespace llmprof::bench
