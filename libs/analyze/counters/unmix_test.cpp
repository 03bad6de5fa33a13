// Classes out of samples of the whole device, on made-up timelines whose truth is known; and the clock's shift.

#include "analyze/counters/unmix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace llmprof::analyze::counters {
namespace {

constexpr std::int64_t kUs = 1000, kMs = 1'000'000;

// Kernels one after the other, each of a class with a rate; what was counted until any moment is known exactly.
class Timeline {
 public:
  explicit Timeline(std::vector<double> rates) : rates_(std::move(rates)) {}

  void run(std::int32_t kind, std::int64_t length_ns, double factor = 1) {
    intervals.push_back({now_, now_ + length_ns, kind});
    amounts_.push_back(rates_[static_cast<std::size_t>(kind)] * factor * static_cast<double>(length_ns) * 1e-9);
    now_ += length_ns;
  }
  void idle(std::int64_t length_ns) { now_ += length_ns; }
  std::int64_t now() const { return now_; }

  // Counted in [begin, end): each kernel counts evenly over its time.
  std::vector<Sample> samples(std::int64_t period_ns) const {
    std::vector<Sample> all;
    for (std::int64_t at = 0; at + period_ns <= now_; at += period_ns) all.push_back({at, at + period_ns, 0});
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      const Interval& ran = intervals[i];
      const auto length = static_cast<double>(ran.end_ns - ran.begin_ns);
      for (auto s = static_cast<std::size_t>(ran.begin_ns / period_ns); s < all.size() && all[s].begin_ns < ran.end_ns;
           ++s) {
        const auto part =
            static_cast<double>(std::min(ran.end_ns, all[s].end_ns) - std::max(ran.begin_ns, all[s].begin_ns));
        all[s].count += amounts_[i] * part / length;
      }
    }
    return all;
  }

  std::vector<Interval> intervals;

 private:
  std::vector<double> rates_;
  std::vector<double> amounts_;
  std::int64_t now_ = 0;
};

const std::vector<double> kRates{4e12, 1e12, 2.5e11, 0, 8e11};

// A decode step again and again: kernels of 3 to 200 us, of five classes, with pauses; lengths vary by `spread`.
Timeline decode(std::mt19937& random, int steps, double spread, double rate_spread) {
  Timeline line(kRates);
  std::normal_distribution<double> normal;
  const auto about = [&](std::int64_t length) {
    return std::max<std::int64_t>(
        1000, static_cast<std::int64_t>(static_cast<double>(length) * (1 + spread * normal(random))));
  };
  const auto factor = [&] { return std::max(0.0, 1 + rate_spread * normal(random)); };
  for (int step = 0; step < steps; ++step) {
    for (int layer = 0; layer < 6; ++layer) {
      line.run(0, about(60 * kUs), factor());
      line.run(1, about(25 * kUs), factor());
      line.run(2, about(10 * kUs), factor());
      if (layer % 2 == 0) line.run(4, about(35 * kUs), factor());
      line.idle(about(3 * kUs));
    }
    line.run(0, about(200 * kUs), factor());
    line.run(3, about(15 * kUs), factor());
    line.idle(about(40 * kUs));
  }
  return line;
}

TEST(Unmix, WithoutNoiseEveryClassIsExact) {
  std::mt19937 random(1);
  const Timeline line = decode(random, 400, 0.1, 0);
  const Unmixed result = unmix({line.samples(100 * kUs), line.intervals, 5, false, 0});
  ASSERT_EQ(result.kinds.size(), 5u);
  for (std::size_t kind = 0; kind < 5; ++kind) {
    EXPECT_EQ(result.kinds[kind].kind, static_cast<std::int32_t>(kind));
    EXPECT_NEAR(result.kinds[kind].rate, kRates[kind], 1e-6 * kRates[0]);
    EXPECT_TRUE(result.kinds[kind].told_apart);
  }
  EXPECT_NEAR(result.idle.rate, 0, 1e-6 * kRates[0]);
  EXPECT_GT(result.idle.time_ns, 400 * 40 * kUs * 9 / 10);
  EXPECT_EQ(result.other.time_ns, 0);
  EXPECT_GT(result.explained, 0.999999);
}

// Each sample of 1 ms holds half a step: no kernel is as long as a sample. Rates that vary from kernel to kernel by
// 10 %, noise of 1 % on the counts. In 60 runs with 5 classes and idle time, 19 of 20 truths must be within the error;
// of 360, 95 % is 342, with a deviation of 4: fewer than 330 would be no chance.
TEST(Unmix, ErrorsCoverTheTruth) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  int covered = 0, all = 0;
  double relative = 0;
  for (int run = 0; run < 60; ++run) {
    const Timeline line = decode(random, 500, 0.1, 0.1);
    UnmixInput input{line.samples(kMs), line.intervals, 5};
    for (Sample& sample : input.samples) sample.count *= 1 + 0.01 * normal(random);
    const Unmixed result = unmix(input);
    for (std::size_t kind = 0; kind < 5; ++kind) {
      ++all;
      covered += std::abs(result.kinds[kind].rate - kRates[kind]) <= result.kinds[kind].error ? 1 : 0;
    }
    ++all;
    covered += result.idle.rate <= result.idle.error ? 1 : 0;
    relative += result.kinds[0].error / result.kinds[0].rate / 60;
  }
  EXPECT_GE(covered, 330) << "of " << all;
  EXPECT_LT(relative, 0.10);  // and they are of use
}

// Every sample is off by up to 10 us on its own: what is counted moves to the neighbour.
TEST(Unmix, AClockThatJittersIsWithinTheError) {
  std::mt19937 random(11);
  std::uniform_int_distribution<std::int64_t> jitter(-10 * kUs, 10 * kUs);
  int covered = 0;
  for (int run = 0; run < 20; ++run) {
    const Timeline line = decode(random, 500, 0.1, 0.05);
    UnmixInput input{line.samples(200 * kUs), line.intervals, 5};
    std::int64_t before = 0;
    for (Sample& sample : input.samples) {
      sample.begin_ns = before;
      before = sample.end_ns += jitter(random);
    }
    const Unmixed result = unmix(input);
    for (std::size_t kind = 0; kind < 5; ++kind) {
      covered += std::abs(result.kinds[kind].rate - kRates[kind]) <= result.kinds[kind].error ? 1 : 0;
    }
    EXPECT_NEAR(result.kinds[0].rate, kRates[0], 0.1 * kRates[0]);
  }
  EXPECT_GE(covered, 90);  // of 100
}

// Placed by their usual length while they really took longer or shorter: within the (larger) error.
TEST(Unmix, EstimatedPlacesHaveLargerErrors) {
  std::mt19937 random(13);
  const Timeline line = decode(random, 400, 0.1, 0.05);
  UnmixInput input{line.samples(500 * kUs), line.intervals, 5};
  std::uniform_int_distribution<std::int64_t> moved(-15 * kUs, 15 * kUs);
  for (Interval& interval : input.intervals) {
    const std::int64_t move = moved(random);
    interval.begin_ns += move;
    interval.end_ns += move;
  }
  const Unmixed plain = unmix(input);
  input.estimated = true;
  const Unmixed estimated = unmix(input);
  for (std::size_t kind = 0; kind < 5; ++kind) {
    EXPECT_GE(estimated.kinds[kind].error, plain.kinds[kind].error * 0.999);
    EXPECT_LE(std::abs(estimated.kinds[kind].rate - kRates[kind]), estimated.kinds[kind].error);
  }
}

// Class 1 always follows class 0 and takes half its time: nobody can say which of them counts.
TEST(Unmix, ClassesInAFixedProportionSaySo) {
  Timeline line({4e12, 1e12, 5e11});
  std::mt19937 random(3);
  std::uniform_int_distribution<std::int64_t> pause(0, 300 * kUs);
  std::vector<Sample> samples;
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t begin = line.now();
    line.run(0, 200 * kUs);
    line.run(1, 100 * kUs);
    line.run(2, 50 * kUs + pause(random));
    line.idle(10 * kUs + pause(random));
    const Interval& last = line.intervals.back();
    // One sample a round: 200 us at 4e12, 100 us at 1e12 and the rest at 5e11 per second.
    const double counted =
        4e12 * 200e-6 + 1e12 * 100e-6 + 5e11 * static_cast<double>(last.end_ns - last.begin_ns) * 1e-9;
    samples.push_back({begin, line.now(), counted});
  }
  const Unmixed result = unmix({samples, line.intervals, 3, false, 0});
  for (const std::size_t kind : {0u, 1u}) {
    EXPECT_FALSE(result.kinds[kind].told_apart);
    EXPECT_GE(result.kinds[kind].error, result.kinds[kind].rate);
    EXPECT_LE(std::abs(result.kinds[kind].rate - (kind == 0 ? 4e12 : 1e12)), result.kinds[kind].error);
  }
  EXPECT_TRUE(result.kinds[2].told_apart);
  EXPECT_NEAR(result.kinds[2].rate, 5e11, 1e9);
}

TEST(Unmix, BeyondTheHeaviestIsOneClassAndHolesAreLeftOut) {
  constexpr std::int32_t kKinds = kMostKinds + 20;
  std::vector<double> rates(kKinds, 1e9);
  Timeline line(rates);
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    const auto kind = static_cast<std::int32_t>(random() % kKinds);
    line.run(kind, (kind < kMostKinds ? 40 : 4) * kUs + static_cast<std::int64_t>(random() % 5000));
  }
  UnmixInput input{line.samples(100 * kUs), line.intervals, kKinds};
  UnmixSeries whole, holes;
  for (const Sample& sample : input.samples) {
    whole.counts.push_back(sample.count);
    holes.counts.push_back(whole.counts.size() % 3 == 0 ? std::nan("") : sample.count);
  }
  const std::vector<Unmixed> results = unmix(input, {whole, holes});
  ASSERT_EQ(results[0].kinds.size(), static_cast<std::size_t>(kMostKinds));
  EXPECT_NEAR(results[0].other.rate, 1e9, 1e6);
  EXPECT_GT(results[0].other.time_ns, 0);
  EXPECT_NEAR(results[1].kinds[0].rate, 1e9, 1e6);
  EXPECT_EQ(results[0].samples, static_cast<std::int64_t>(input.samples.size()));
  EXPECT_EQ(results[1].samples, static_cast<std::int64_t>(input.samples.size() - input.samples.size() / 3));
}

TEST(Unmix, NothingToGoByGivesNothing) {
  EXPECT_TRUE(unmix({}).kinds.empty());
  const Unmixed no_kernels = unmix({{{0, 1000, 5}, {1000, 2000, 5}}, {}, 0});
  EXPECT_TRUE(no_kernels.kinds.empty());
  EXPECT_NEAR(no_kernels.idle.rate, 5e6, 1);
  // Backwards, empty or of an unknown class.
  const Unmixed odd = unmix({{{0, 1000, 5}}, {{500, 100, 0}, {5, 5, 0}, {0, 10, 7}, {0, 10, -1}}, 1});
  EXPECT_TRUE(odd.kinds.empty());
}

TEST(Nnls, HoldsAtZeroWhatWouldBeNegative) {
  // A = [1 1; 1 -1], y = [1 3]: without the bound x = (2, -1); with it the best is (2, 0).
  SquareMatrix gram(2);
  gram.at(0, 0) = gram.at(1, 1) = 2;
  const Nnls solution = nnls(gram, {4, -2});
  EXPECT_DOUBLE_EQ(solution.x[0], 2);
  EXPECT_EQ(solution.x[1], 0);
  EXPECT_EQ(solution.chosen, std::vector<std::size_t>{0});
}

TEST(Align, FindsTheShiftOfTheSamples) {
  std::mt19937 random(17);
  std::normal_distribution<double> normal;
  Timeline line({1e9, 1e9});
  for (int i = 0; i < 3000; ++i) {
    line.run(0, 100 * kUs + static_cast<std::int64_t>(random() % 400'000));
    line.idle(50 * kUs + static_cast<std::int64_t>(random() % 300'000));
  }
  std::vector<Sample> samples = line.samples(kMs);
  for (Sample& sample : samples) sample.count *= 1 + 0.02 * normal(random);
  const Alignment still = align(samples, line.intervals);
  EXPECT_EQ(still.shift_ns, 0);
  EXPECT_GT(still.fit, 0.95);
  for (Sample& sample : samples) {
    sample.begin_ns += 130 * kUs;
    sample.end_ns += 130 * kUs;
  }
  const Alignment moved = align(samples, line.intervals);
  EXPECT_TRUE(moved.certain);
  EXPECT_NEAR(moved.shift_ns, -130'000, 5000);
  EXPECT_GT(moved.fit, moved.fit_unshifted);
}

// The device is hardly idle, but its classes differ: 12 us are found to a microsecond, and the rates are right again.
TEST(Align, ClassesTellTheShiftOfABusyDevice) {
  std::mt19937 random(23);
  const Timeline line = decode(random, 500, 0.1, 0.05);
  UnmixInput input{line.samples(100 * kUs), line.intervals, 5};
  UnmixSeries counts;
  for (Sample& sample : input.samples) {
    counts.counts.push_back(sample.count);
    sample.begin_ns += 12 * kUs;
    sample.end_ns += 12 * kUs;
  }
  const Alignment moved = align_by_classes(input, counts);
  EXPECT_TRUE(moved.certain);
  EXPECT_NEAR(moved.shift_ns, -12'000, 1000);
  EXPECT_GT(moved.fit, moved.fit_unshifted);
  for (Sample& sample : input.samples) {
    sample.begin_ns += static_cast<std::int64_t>(moved.shift_ns);
    sample.end_ns += static_cast<std::int64_t>(moved.shift_ns);
  }
  const Alignment still = align_by_classes(input, counts);
  EXPECT_FALSE(still.certain);
  EXPECT_EQ(still.shift_ns, 0);
  // All of that by itself.
  for (Sample& sample : input.samples) {
    sample.begin_ns += 12 * kUs;
    sample.end_ns += 12 * kUs;
  }
  const Unmixed result = unmix(input, {counts})[0];
  EXPECT_NEAR(result.shift_ns, -12'000, 1000);
  EXPECT_NEAR(result.kinds[0].rate, kRates[0], 0.02 * kRates[0]);
  EXPECT_LT(result.kinds[0].error, 0.03 * kRates[0]);
  EXPECT_GT(unmix_as_is(input, {counts})[0].kinds[0].error, 0.05 * kRates[0]);
}

TEST(Align, NothingIsMovedWhereNothingIsSure) {
  std::mt19937 random(19);
  Timeline line({1e9});
  for (int i = 0; i < 2000; ++i) {
    line.run(0, 500 * kUs);
    line.idle(20 * kUs + static_cast<std::int64_t>(random() % 100'000));
  }
  std::vector<Sample> samples = line.samples(kMs);
  for (Sample& sample : samples) sample.count = static_cast<double>(random() % 1000);  // of something else
  const Alignment alignment = align(samples, line.intervals);
  EXPECT_FALSE(alignment.certain);
  EXPECT_EQ(alignment.shift_ns, 0);
  EXPECT_EQ(align({}, {}).shift_ns, 0);
}

}  // namespace
}  // namespace llmprof::analyze::counters
