#include "bench/cpu_bench_sampler.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>

namespace llmprof::bench {
namespace {

// Reading the clock takes some 20 to 50 ns: a hundredth of 20 us is 200 ns.
constexpr double kShortCall = 20e-6, kSampleSeconds = 100e-6;
constexpr double kMostCalls = 10'000;
constexpr double kLeastSeconds = 1e-9;  // the clock's step: a call that seems to take none took less than one

double seconds_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double now() { return seconds_of(CLOCK_MONOTONIC); }

}  // namespace

std::size_t calls_per_sample(double call_seconds) {
  if (call_seconds >= kShortCall) return 1;
  return static_cast<std::size_t>(
      std::min(kMostCalls, std::ceil(kSampleSeconds / std::max(call_seconds, kLeastSeconds))));
}

Result<std::vector<Sample>> CpuSampler::next(std::size_t wanted) {
  const double cpu_before = seconds_of(CLOCK_THREAD_CPUTIME_ID), wall_before = now();
  if (cache_ == Cache::kHot && !calls_per_sample_) choose_calls_per_sample();
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < wanted; ++i) {
    samples.push_back({.seconds = cache_ == Cache::kHot ? hot_sample() : cold_sample()});
  }
  cpu_seconds_ += seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu_before;
  wall_seconds_ += now() - wall_before;
  return samples;
}

double CpuSampler::cold_sample() {
  if (next_set_ == 0 && calls_.flush) calls_.flush();
  const double begin = now();
  calls_.call(next_set_);
  const double end = now();
  next_set_ = (next_set_ + 1) % std::max<std::size_t>(calls_.sets, 1);
  return std::max(end - begin, kLeastSeconds);
}

double CpuSampler::hot_sample() {
  const double begin = now();
  for (std::size_t i = 0; i < *calls_per_sample_; ++i) calls_.call(0);
  return std::max(now() - begin, kLeastSeconds) / static_cast<double>(*calls_per_sample_);
}

// The best of three: the first one warms the cache, and others may be disturbed.
void CpuSampler::choose_calls_per_sample() {
  double best = kShortCall;
  for (int i = 0; i < 3; ++i) {
    const double begin = now();
    calls_.call(0);
    best = std::min(best, now() - begin);
  }
  calls_per_sample_ = calls_per_sample(best);
}

std::string CpuSampler::timer() const {
  if (calls_per_sample_.value_or(1) == 1) return "clock";
  return fmt::format("clock, {} calls at a time", *calls_per_sample_);
}

}  // namespace llmprof::bench
