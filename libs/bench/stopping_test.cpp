#include "bench/measure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace llmprof::bench {
namespace {

constexpr double kNanosecond = 1e-9;

// Samples until the criterion is done; `most` if never.
template <class Criterion, class Series>
int samples_until_done(Criterion criterion, Series&& series, int most) {
  for (int i = 0; i < most; ++i) {
    criterion.add(series(i));
    if (criterion.done()) return i + 1;
  }
  return most;
}

TEST(Spread, RelativeErrorByHand) {
  SpreadCriterion spread(0.005);
  EXPECT_FALSE(spread.done());
  spread.add(9);
  EXPECT_FALSE(spread.done());  // one sample says nothing of the spread
  spread.add(11);               // deviation sqrt(2), standard error 1, mean 10
  EXPECT_NEAR(spread.relative_error(), 0.1, 1e-12);
  for (const double value : {9, 11}) spread.add(value);  // deviation sqrt(4 / 3), over sqrt(4)
  EXPECT_NEAR(spread.relative_error(), std::sqrt(4.0 / 3) / 2 / 10, 1e-12);
}

TEST(Spread, NoiseOfTenPercentNeedsFourHundredSamples) {
  // 0.1 / sqrt(n) <= 0.005 from n = 400 on; alternating samples have exactly that deviation.
  const int samples = samples_until_done(
      SpreadCriterion(0.005), [](int i) { return i % 2 == 0 ? 0.9 : 1.1; }, 10'000);
  EXPECT_NEAR(samples, 400, 3);
}

TEST(Entropy, BitsByHand) {
  EntropyCriterion entropy(kNanosecond);
  entropy.add(100e-9);
  EXPECT_EQ(entropy.entropy_bits(), 0);
  entropy.add(200e-9);
  EXPECT_DOUBLE_EQ(entropy.entropy_bits(), 1);  // two equally likely
  entropy.add(200e-9);
  entropy.add(200.3e-9);  // the same step of the timer
  // 1/4 and 3/4: 0.25 * 2 + 0.75 * 0.415 = 0.811
  EXPECT_NEAR(entropy.entropy_bits(), 0.8113, 1e-4);
}

TEST(Entropy, ConstantTimesAreDoneWithTheFirstWindow) {
  EXPECT_EQ(samples_until_done(
                EntropyCriterion(kNanosecond), [](int) { return 5e-6; }, 10'000),
            static_cast<int>(EntropyCriterion::kLeastPoints));
}

TEST(Entropy, DriftingTimesTakeUntilTheSlopeIsLost) {
  // Every sample is new: log2(n) bits, slope 1 / (n ln 2), which is tan(0.048°) = 0.000838 at n = 1722 in the middle of
  // the window.
  const int samples = samples_until_done(
      EntropyCriterion(kNanosecond), [](int i) { return 5e-6 + i * 1e-8; }, 10'000);
  EXPECT_NEAR(samples, 1722 + static_cast<int>(EntropyCriterion::kWindow) / 2, 10);
}

TEST(Entropy, TwoModesAreKnownSoonerThanNoise) {
  std::mt19937_64 random(1);
  const auto two = [&](int) { return random() % 2 == 0 ? 5e-6 : 8e-6; };
  std::normal_distribution<double> normal(5e-6, 5e-7);
  const auto noise = [&](int) { return normal(random); };
  const int modes = samples_until_done(EntropyCriterion(kNanosecond), two, 10'000);
  const int wide = samples_until_done(EntropyCriterion(kNanosecond), noise, 10'000);
  EXPECT_LT(modes, 1000);
  EXPECT_GT(wide, modes);
}

TEST(FittedLine, ByHand) {
  const Line line = fitted_line({1, 3, 5, 7});
  EXPECT_DOUBLE_EQ(line.slope, 2);
  EXPECT_DOUBLE_EQ(line.r2, 1);
  // Points 0 1 0: no slope, and the line explains nothing.
  EXPECT_EQ(fitted_line({0, 1, 0}).slope, 0);
  EXPECT_EQ(fitted_line({0, 1, 0}).r2, 0);
  EXPECT_EQ(fitted_line({4, 4, 4}).r2, 1);
}

TEST(Entropy, HugeTimesDoNotOverflow) {
  EntropyCriterion entropy(1e-9);
  entropy.add(1e300);
  entropy.add(1e-300);
  EXPECT_DOUBLE_EQ(entropy.entropy_bits(), 1);
}

}  // namespace
}  // namespace llmprof::bench
