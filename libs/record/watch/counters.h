#pragma once
// Hardware counters sampled beside a launch: a child process reads the devices, the recorder writes what it tells.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/host_log.h"
#include "hw/counters/pm_sampling.h"
#include "record/run/capture.h"
#include "record/watch/counter_plan.h"
#include "record/watch/watch_child.h"
#include "trace/loss.h"

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

// A process of its own that samples the hardware counters of the devices (hw/counters/pm_sampling.h) and tells this one
// through a pipe. The CUDA driver is loaded there only.
//
// What the child tells; the pipe carries it as it is.
struct CounterHead {
  enum class Kind : std::uint32_t {
    kDevice,  // there is this device; before its first sample
    kMetric,  // the next metric of a device, by the chip's own name
    kSample,  //
    kLoss,    // `loss`, `count` and `text` are to be noted
    kNote,    // `text` is for people
  };
  Kind kind = Kind::kSample;
  std::uint32_t device = 0;
  std::uint64_t begin_ns = 0, end_ns = 0;     // sample: CLOCK_MONOTONIC_RAW
  std::uint64_t uuid_high = 0, uuid_low = 0;  // device
  trace::Loss loss = trace::Loss::kNone;
  std::uint64_t count = 0;
};

struct CounterEvent : CounterHead {
  std::string text;
  std::vector<double> values;  // sample: in the order of the metrics
};

struct CounterPace {
  double share = 0.12;                                     // of one core, for all devices
  std::chrono::milliseconds shortest{500}, longest{2000};  // between two readings
};

class CounterChild {
 public:
  // What to sample, opened in the child. An error's code says why there is nothing: kForbidden and so on are told as
  // losses in the events of what it returns.
  using Open = std::function<hw::counters::PmDevices()>;

  // Forks; to be called while this process has one thread.
  static Result<std::unique_ptr<CounterChild>> start(const Open& open, const CounterPace& pace);

  std::vector<CounterEvent> receive();  // events that came by now; does not wait
  int descriptor() const { return child_->descriptor(); }
  bool ended() const { return child_->ended(); }
  // Takes the last samples and ends. False: it did not answer in time and was abandoned.
  bool stop(std::chrono::milliseconds patience = std::chrono::seconds(3)) { return child_->stop(patience); }

 private:
  explicit CounterChild(std::unique_ptr<WatchChild> child) : child_(std::move(child)) {}
  std::unique_ptr<WatchChild> child_;
};

// What goes through the pipe between the counter child and its parent: a head, then text and values.

void append(std::string& bytes, const CounterEvent& event);
// The first event of `bytes`, which then begins behind it. False: there is no whole one (yet).
bool take(std::string_view& bytes, CounterEvent& event);

// Hardware counters sampled beside a launch, by a child process, into the recorder's log: a kCounterWindow (scope
// kSample) per sample with its values. What cannot be sampled is noted as a loss. Works where
// CounterOptions::method is kSampled; else nothing happens.

CounterChild::Open open_sampled_devices(const CounterOptions& options);

class CounterSampler {
 public:
  explicit CounterSampler(const CounterOptions& options) : CounterSampler(options, open_sampled_devices(options)) {}
  CounterSampler(const CounterOptions& options, CounterChild::Open open) : options_(options), open_(std::move(open)) {}

  void start();  // before this process has other threads
  // Takes what came; true: there is something to write. One thread at a time.
  bool receive();
  void write(host::HostLog& log);  // what was received
  void stop();                     // the program ended, or the recording reached its size
  void finish(CaptureInfo& info);  // notes the losses
  // The devices' counters may not be read here, or are held by others: NVML's activity is what is left.
  bool refused();

 private:
  void take(std::vector<CounterEvent> events);
  void write_samples(std::vector<const CounterEvent*>& samples, host::HostLog& log);  // and forgets them

  CounterOptions options_;
  CounterChild::Open open_;
  std::mutex mutex_;  // the sampler's thread receives, the main thread stops
  std::unique_ptr<CounterChild> child_;
  std::vector<CounterEvent> received_;
  std::map<std::uint32_t, std::vector<std::string>> metrics_;  // of each device
  std::vector<NotedLoss> losses_;
  bool refused_ = false;
  std::uint32_t measurement_ = 0;
};

}  // namespace llmprof::record
