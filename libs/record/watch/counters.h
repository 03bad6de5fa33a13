#pragma once
// Hardware counters sampled beside a launch: a child process reads the devices, the recorder writes what it tells.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/result.h"
#include "hw/counters/pm_sampling.h"
#include "record/watch/counter_plan.h"
#include "record/watch/device_watch.h"

namespace llmprof::record {

// From the clock on the wall to CLOCK_MONOTONIC_RAW, by pairs read from time to time: the wall's clock is steered, and
// may be set.
class ClockTrack {
 public:
  void add(const ClockPair& pair) {
    constexpr std::int64_t kLeastApartNs = 100'000'000;  // else the error of a pair shows in the rate
    if (!before_ || (last_ && pair.raw_ns - last_->raw_ns >= kLeastApartNs)) before_ = last_;
    last_ = pair;
  }

  // Between the last two pairs, or beside them.
  std::int64_t raw_ns(std::int64_t wall_ns) const {
    if (!last_) return wall_ns;
    return last_->raw_ns -
           static_cast<std::int64_t>(std::llround(static_cast<double>(last_->wall_ns - wall_ns) * rate()));
  }

 private:
  // Raw time per wall time. Clocks are steered by less than 0.1 %; more means that the wall's was set in between, and
  // then times follow the later pair.
  double rate() const {
    constexpr double kMostSteered = 1e-3;
    if (!before_ || last_->wall_ns <= before_->wall_ns) return 1;
    const double rate =
        static_cast<double>(last_->raw_ns - before_->raw_ns) / static_cast<double>(last_->wall_ns - before_->wall_ns);
    return std::abs(rate - 1) < kMostSteered ? rate : 1;
  }

  std::optional<ClockPair> before_, last_;
};

// When to read samples, and when to rest, by what reading took of a core. Longer between two readings costs less a
// sample; where even the longest costs too much, sampling rests in between. Plain arithmetic, no clock.
class CounterPacer {
 public:
  CounterPacer(double share, std::uint64_t shortest_ns, std::uint64_t longest_ns)
      : share_(share),
        shortest_ns_(std::min(shortest_ns, longest_ns)),
        longest_ns_(longest_ns),
        wait_ns_(shortest_ns_) {}

  // A reading of what was sampled in `sampled_ns` took so much CPU time.
  void took(std::uint64_t sampled_ns, std::uint64_t cpu_ns) {
    const auto cpu = static_cast<double>(cpu_ns);
    const auto sampled = static_cast<double>(sampled_ns);
    const double used = sampled > 0 ? cpu / sampled : 1;
    rest_ns_ = 0;
    if (used > share_) {
      if (wait_ns_ == longest_ns_) rest_ns_ = static_cast<std::uint64_t>(std::min(cpu / share_ - sampled, kMostRestNs));
      wait_ns_ = std::min(longest_ns_, wait_ns_ + wait_ns_ / 2);
    } else if (used < share_ / 2) {
      wait_ns_ = std::max(shortest_ns_, wait_ns_ - wait_ns_ / 3);
    }
  }
  std::uint64_t wait_ns() const { return wait_ns_; }  // until the next reading
  std::uint64_t rest_ns() const { return rest_ns_; }  // before it, without sampling

 private:
  static constexpr double kMostRestNs = 30e9;  // one odd reading must not end the sampling

  double share_;
  std::uint64_t shortest_ns_, longest_ns_, wait_ns_, rest_ns_ = 0;
};

struct CounterPace {
  double share = 0.12;                                     // of one core, for all devices
  std::chrono::milliseconds shortest{500}, longest{2000};  // between two readings
};

// What to sample, opened in the child: what cannot be is told as losses.
using CounterOpen = std::function<hw::counters::PmDevices()>;

// A process of its own that samples the hardware counters of the devices (hw/counters/pm_sampling.h). The CUDA driver
// is loaded there only. To be called while this process has one thread.
Result<std::unique_ptr<WatchChild>> start_counters(const CounterOpen& open, const CounterPace& pace);

CounterOpen open_sampled_devices(const CounterOptions& options);

// Hardware counters sampled beside a launch, by a child process, into the recorder's log: a kCounterWindow (scope
// kSample) per sample with its values. What cannot be sampled is noted as a loss. Works where
// CounterOptions::method is kSampled; else nothing happens.
class CounterSampler : public DeviceWatch {
 public:
  explicit CounterSampler(const CounterOptions& options) : CounterSampler(options, open_sampled_devices(options)) {}
  // Its devices have numbers beside those that telemetry gives its own.
  CounterSampler(const CounterOptions& options, CounterOpen open)
      : DeviceWatch({.subject = "counters",
                     .failed = trace::Loss::kCountersFailed,
                     .patience = std::chrono::seconds(3),
                     .may_be_silent = std::chrono::seconds(0),
                     .first_device = 1000}),
        options_(options),
        open_(std::move(open)) {}
  void start();  // before this process has other threads

 private:
  CounterOptions options_;
  CounterOpen open_;
};

}  // namespace llmprof::record
