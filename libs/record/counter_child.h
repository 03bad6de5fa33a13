#pragma once
// A process of its own that samples the hardware counters of the devices (hw/counters/pm_sampling.h) and tells this one
// through a pipe. The CUDA driver is loaded there only.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "hw/counters/pm_sampling.h"
#include "record/watch_child.h"
#include "trace/loss.h"

namespace llmprof::record {

struct CounterEvent {
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

}  // namespace llmprof::record
