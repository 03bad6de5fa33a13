#include "bench/measure.h"

#include <gtest/gtest.h>

#include <cmath>

namespace llmprof::bench {
namespace {

// A device in a world where time passes only by its samples and its pauses.
class Script : public Sampler {
 public:
  std::function<Sample(int)> sample = [](int) { return Sample{.seconds = 1e-3}; };
  double overhead_seconds = 0;  // of each sample
  double now = 100;
  std::vector<double> pauses;
  std::vector<std::size_t> asked;
  int taken = 0;

  Result<std::vector<Sample>> next(std::size_t wanted) override {
    asked.push_back(wanted);
    std::vector<Sample> samples;
    for (std::size_t i = 0; i < wanted; ++i) {
      samples.push_back(sample(taken++));
      now += samples.back().seconds + overhead_seconds;
    }
    return samples;
  }

  Result<Measurement> measure(
      const MeasureSettings& settings, const std::function<bool()>& go_on = [] { return true; }) {
    const MeasureWorld world{.now_seconds = [this] { return now; },
                             .sleep =
                                 [this](double seconds) {
                                   pauses.push_back(seconds);
                                   now += seconds;
                                 }};
    return bench::measure(*this, settings, go_on, world);
  }
};

TEST(Measure, ConstantTimesStopBySpreadAfterTheLeast) {
  Script script;
  const auto measured = script.measure({});
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->stopped_by, StoppedBy::kSpread);
  EXPECT_FALSE(measured->noisy);
  EXPECT_EQ(measured->time.median, 1e-3);
  EXPECT_EQ(measured->samples.size(), 64u);  // 50 ms of 1 ms each, in batches of 16
  EXPECT_EQ(script.taken, 84);               // and 20 ms of warm-up
  EXPECT_NEAR(measured->spent_seconds, 0.084, 1e-9);
}

TEST(Measure, LongCallsAreTakenOneByOneUntilTheLimit) {
  Script script;
  script.sample = [](int i) { return Sample{.seconds = i % 2 == 0 ? 0.9 : 1.1}; };
  const auto measured = script.measure({.limit_seconds = 3});
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->stopped_by, StoppedBy::kTime);
  EXPECT_TRUE(measured->noisy);
  EXPECT_EQ(measured->samples.size(), 3u);  // warm-up to 0.9 s, then to 2.0, 2.9 and 4.0 s
  for (const std::size_t asked : script.asked) EXPECT_EQ(asked, 1u);
}

TEST(Measure, OneSampleEvenWhenWarmUpTookTheLimit) {
  Script script;
  script.sample = [](int) { return Sample{.seconds = 100}; };
  const auto measured = script.measure({.limit_seconds = 3});
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->samples.size(), 1u);
  EXPECT_TRUE(measured->noisy);  // of one sample the spread is unknown
}

TEST(Measure, ManySamplesOfWideSpreadAreNoisy) {
  Script script;
  script.sample = [](int i) { return Sample{.seconds = 1e-6 * std::pow(10, i % 5)}; };
  const auto measured = script.measure({.most_samples = 100, .by_entropy = false});
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->stopped_by, StoppedBy::kSamples);
  EXPECT_EQ(measured->samples.size(), 100u);
  EXPECT_TRUE(measured->noisy);
}

TEST(Measure, TwoModesStopByEntropy) {
  // 5 or 50 us by a coin: the mean stays uncertain for long, the distribution is known soon.
  Script script;
  script.sample = [](int i) { return Sample{.seconds = (i * 2654435761u >> 16) % 2 == 0 ? 5e-6 : 50e-6}; };
  script.overhead_seconds = 1e-4;
  const auto measured = script.measure({.relative_spread = 1e-5});
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->stopped_by, StoppedBy::kEntropy);
  EXPECT_TRUE(measured->noisy);  // its median may be either
}

TEST(Measure, ThrottledSamplesAreDiscardedAfterAPause) {
  Script script;
  script.sample = [](int i) {
    const bool hot = i >= 60 && i <= 112;
    return Sample{.seconds = hot ? 2e-3 : 1e-3, .clock_mhz = hot ? 700.0 : 1900.0};
  };
  const auto measured = script.measure({.least_samples = 100, .warm_up_seconds = 0, .full_clock_mhz = 2000});
  ASSERT_TRUE(measured);
  EXPECT_FALSE(measured->slow_clock);
  EXPECT_EQ(measured->time.max, 1e-3);
  EXPECT_EQ(measured->clock_mhz, 1900);
  // Sample 0 is warm-up. Batches of 16: 49…64 has some of them; the warm-up after each pause takes until the clock is
  // up, for 0.1 s at most: the rest, 65…112, in one go.
  EXPECT_EQ(measured->throttled, 5u);
  ASSERT_EQ(script.pauses.size(), 1u);
  EXPECT_NEAR(script.pauses[0], 0.05, 1e-9);
}

TEST(Measure, PausesGrowUntilTheClockIsBack) {
  Script script;
  script.sample = [&](int i) {
    const bool hot = i > 16 && script.now < 100.9;  // three pauses and what is between them
    return Sample{.seconds = 1e-3, .clock_mhz = hot ? 700.0 : 1900.0};
  };
  const auto measured = script.measure({.least_samples = 100, .warm_up_seconds = 0, .full_clock_mhz = 2000});
  ASSERT_TRUE(measured);
  EXPECT_FALSE(measured->slow_clock);
  ASSERT_EQ(script.pauses.size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(script.pauses[i], 0.05 * (i + 1), 1e-9);
  EXPECT_EQ(measured->clock_mhz, 1900);
}

TEST(Measure, AnIdleClockMayRiseBeforeItIsJudged) {
  Script script;
  script.sample = [&](int) { return Sample{.seconds = 1e-3, .clock_mhz = script.now < 100.15 ? 345.0 : 1900.0}; };
  const auto measured = script.measure({.full_clock_mhz = 2000});
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->throttled, 0u);
  EXPECT_TRUE(script.pauses.empty());
  EXPECT_EQ(measured->time.count, 64u);
}

TEST(Measure, AClockThatStaysLowIsTheDevice) {
  Script script;
  script.sample = [](int) { return Sample{.seconds = 1e-3, .clock_mhz = 1400}; };
  const auto measured = script.measure({.full_clock_mhz = 2000});
  ASSERT_TRUE(measured);
  EXPECT_TRUE(measured->slow_clock);
  EXPECT_EQ(measured->throttled, 0u);
  EXPECT_EQ(measured->clock_mhz, 1400);
  EXPECT_EQ(script.pauses.size(), 4u);  // 0.05 + 0.10 + 0.15 + 0.20 s
  EXPECT_EQ(measured->stopped_by, StoppedBy::kSpread);
}

TEST(Measure, AThrottledDeviceAtTheLimitStillHasATime) {
  Script script;
  script.sample = [](int) { return Sample{.seconds = 2, .clock_mhz = 300}; };
  const auto measured = script.measure({.limit_seconds = 3, .full_clock_mhz = 2000});
  ASSERT_TRUE(measured);
  EXPECT_TRUE(measured->slow_clock);
  EXPECT_EQ(measured->samples.size(), 1u);
}

TEST(Measure, InterruptedKeepsWhatThereIs) {
  Script script;
  int calls = 0;
  script.sample = [](int i) { return Sample{.seconds = 1e-2 * (1 + i % 3)}; };
  const auto measured = script.measure({}, [&] { return ++calls <= 3; });
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->stopped_by, StoppedBy::kUser);
  EXPECT_TRUE(measured->noisy);
  EXPECT_GT(measured->samples.size(), 0u);
}

TEST(Measure, InterruptedBeforeAnythingIsAnError) {
  Script script;
  const auto measured = script.measure({}, [] { return false; });
  ASSERT_FALSE(measured);
  EXPECT_EQ(measured.error().code, ErrorCode::kInterrupted);
}

TEST(Measure, NothingTakesNoTime) {
  for (const double seconds : {0.0, -1.0, std::nan("")}) {
    Script script;
    script.sample = [&](int) { return Sample{.seconds = seconds}; };
    EXPECT_FALSE(script.measure({}));
  }
}

TEST(Measure, AnErrorOfTheDeviceIsPassedOn) {
  class Broken : public Sampler {
    Result<std::vector<Sample>> next(std::size_t) override { return Error{ErrorCode::kIo, "the device is gone", ""}; }
  } broken;
  const auto measured = measure(broken, {}, [] { return true; });
  ASSERT_FALSE(measured);
  EXPECT_EQ(measured.error().message, "the device is gone");
}

}  // namespace
}  // namespace llmprof::bench
