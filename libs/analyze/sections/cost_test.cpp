#include <gtest/gtest.h>

#include "analyze/sections/sections.h"

namespace llmprof::analyze {

namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr wire::Rests kRests{1'000'000'000, 1'000'000'000, 200'000'000};  // 200 ms of every second, from the first on

// Steps one after another for so many seconds; how long each is says `length(begin_ns, its kind)`.
template <class Length>
std::vector<TimedStep> steps(int seconds, Length length) {
  std::vector<TimedStep> out;
  for (std::int64_t at = 0; at < seconds * 1000 * kMs;) {
    TimedStep step{"", at, 0, 1};
    step.end_ns = at + length(step);
    at = step.end_ns;
    out.push_back(step);
  }
  return out;
}

TEST(MeasuredCost, WatchedStepsAgainstThoseInRests) {
  const auto found = steps(8, [](TimedStep& step) {
    return kRests.at(static_cast<std::uint64_t>(step.begin_ns)) ? 10 * kMs : 10 * kMs + kMs / 10;
  });
  const auto ratio = ratio_of_watching(found, kRests, false);
  ASSERT_TRUE(ratio);
  EXPECT_NEAR(ratio->ratio, 1.01, 1e-6);
  EXPECT_NEAR(ratio->high - ratio->low, 0, 1e-9);
  EXPECT_EQ(ratio->stretches, 7);
}

// A host that becomes slower by half in the middle of the run changes nothing: neighbours are compared.
TEST(MeasuredCost, DriftCancels) {
  const auto found = steps(20, [](TimedStep& step) {
    const bool rests = kRests.at(static_cast<std::uint64_t>(step.begin_ns));
    const std::int64_t base = step.begin_ns > 10'500 * kMs ? 15 * kMs : 10 * kMs;
    return rests ? base : base + base / 50;
  });
  const auto ratio = ratio_of_watching(found, kRests, false);
  ASSERT_TRUE(ratio);
  EXPECT_NEAR(ratio->ratio, 1.02, 0.001);
}

TEST(MeasuredCost, TooFewRestsSayNothing) {
  const auto found = steps(3, [](TimedStep&) { return 10 * kMs; });
  EXPECT_FALSE(ratio_of_watching(found, kRests, false));  // at 1 s and at 2 s
  EXPECT_FALSE(
      ratio_of_watching(steps(30, [](TimedStep&) { return 300 * kMs; }), kRests, false));  // none fits into a rest
  EXPECT_FALSE(ratio_of_watching({}, kRests, false));
}

// Kernels are timed in 300 ms of every 2.4 s, which makes steps 12 % longer; rests do not matter.
TEST(MeasuredCost, TimedStepsAgainstNotedOnes) {
  const auto found = steps(24, [](TimedStep& step) {
    step.recorded = step.begin_ns % (2400 * kMs) < 300 * kMs ? 1 : 0;
    return step.recorded > 0 ? 1120 * kMs / 100 : 10 * kMs;
  });
  const auto ratio = ratio_of_timing(found, kRests);
  ASSERT_TRUE(ratio);
  EXPECT_NEAR(ratio->ratio, 1.12, 1e-6);
  EXPECT_EQ(ratio->stretches, 9);  // ten, but before the first nothing was noted
  EXPECT_NEAR(ratio_of_watching(found, kRests, false)->ratio, 1, 1e-6);
}

TEST(MeasuredCost, WhereAllAreTimedThereIsNothingToCompare) {
  EXPECT_FALSE(ratio_of_timing(steps(24, [](TimedStep&) { return 10 * kMs; }), kRests));
}

// Steps of a busy machine: most take 10 ms, one in five up to four times as long. Recording costs nothing, and
// windows hold few of them. Neither the step that is too long for its window nor the median of few is taken for a cost.
TEST(MeasuredCost, LongTailsAreNoCost) {
  for (const wire::Rests rests :
       {wire::Rests{1'000'000'000, 120'000'000, 60'000'000}, wire::Rests{1'000'000'000, 2'400'000'000, 60'000'000}}) {
    int outside = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      std::uint64_t random = seed * 977;
      const auto found = steps(rests.every_ns > 1'000'000'000 ? 240 : 60, [&](TimedStep&) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const double noise = static_cast<double>(random >> 40) / static_cast<double>(1 << 24);
        return static_cast<std::int64_t>(static_cast<double>(10 * kMs) *
                                         (noise < 0.8 ? 1 + noise / 4 : 1 + 15 * (noise - 0.8)));
      });
      const auto ratio = ratio_of_watching(found, rests, true);
      ASSERT_TRUE(ratio);
      if (ratio->low > 1 || ratio->high < 1) ++outside;
      EXPECT_NEAR(ratio->ratio, 1, 0.05);
    }
    EXPECT_LE(outside, 6);  // of 40 intervals of 95 %, 2 are expected, and more than 6 are not
  }
}

// The interval covers the truth: steps scatter by 10 %.
TEST(MeasuredCost, ScatterMakesTheIntervalWide) {
  std::uint64_t random = 1;
  const auto found = steps(60, [&](TimedStep& step) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const double noise = static_cast<double>(random >> 40) / static_cast<double>(1 << 24);
    const double base = kRests.at(static_cast<std::uint64_t>(step.begin_ns)) ? 1 : 1.03;
    return static_cast<std::int64_t>(static_cast<double>(8 * kMs) * base * (0.95 + 0.1 * noise));
  });
  const auto ratio = ratio_of_watching(found, kRests, false);
  ASSERT_TRUE(ratio);
  EXPECT_LT(ratio->low, 1.03);
  EXPECT_GT(ratio->high, 1.03);
  EXPECT_GT(ratio->low, 1.01);
  EXPECT_LT(ratio->high, 1.05);
}

}  // namespace

}  // namespace llmprof::analyze
