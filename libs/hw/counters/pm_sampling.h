#pragma once
// Hardware counters of a whole device, sampled at a fixed period (CUPTI's PM sampling), from a process of its own:
// nothing is loaded into the program that is measured. What was found on a GPU (H200, CUDA 13.0) and shapes this:
//
// - It needs cuInit and the number of a device, no context.
// - Times are CLOCK_REALTIME. The first sample after a start spans the set-up and is dropped.
// - The hardware's buffer is not recycled by reading it: sampling is stopped and started again before it can be full.
// - Decoding takes 85 to 240 us of CPU time a sample with 6 metrics.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>
#include "hw/system_files.h"

#include "base/result.h"

namespace llmprof::hw::counters {

struct PmSample {
  std::uint64_t begin_ns = 0, end_ns = 0;  // CLOCK_REALTIME
  std::vector<double> values;              // in the order of the metrics; NaN: none
};

struct CallFailure;  // hw/counters/chip_host.h
enum class PmRefusal { kNone, kForbidden, kHeld, kUnsupported, kFailed, kAbsent };

PmRefusal refusal_of(const CallFailure& failure);

// One device that can be sampled: the calls, nothing more.
class PmDevice {
 public:
  virtual ~PmDevice() = default;
  virtual Result<void> start() = 0;
  virtual Result<void> stop() = 0;
  struct Batch {
    std::vector<PmSample> samples;
    bool more = false;      // there are samples that did not fit
    bool overflow = false;  // the hardware's buffer was full
  };
  virtual Result<Batch> decode() = 0;
  virtual std::size_t most_samples() const = 0;  // that surely fit into the hardware's buffer between start and stop
};

struct PmDeviceInfo {
  std::uint32_t device = 0;  // number in CUDA's order
  std::string name, chip;
  std::uint64_t uuid_high = 0, uuid_low = 0;
  std::vector<std::string> metrics;  // that are sampled
  std::chrono::nanoseconds period{0};
};

// Samples of one device without end: drops first samples, restarts before the buffer is full.
class PmSampler {
 public:
  PmSampler(PmDeviceInfo info, std::unique_ptr<PmDevice> device);

  const PmDeviceInfo& info() const { return info_; }
  Result<void> start();
  // What was sampled since the last time; at the end with `last`, after which nothing comes.
  Result<std::vector<PmSample>> poll(bool last = false);
  // Ends until the next start(); what was not polled is polled after that.
  void pause();
  // Readings further apart could find the buffer full.
  std::chrono::nanoseconds longest_apart() const;

  struct Tally {
    std::uint64_t samples = 0, restarts = 0, overflows = 0;
    std::uint64_t gap_ns = 0;  // between a stop and the first sample after the next start
  };
  const Tally& tally() const { return tally_; }

 private:
  Result<bool> take(std::vector<PmSample>& into);
  Result<void> stop_and_take(std::vector<PmSample>& into);
  void keep(PmSample sample, std::vector<PmSample>& into);
  void learn_from_overflow();

  PmDeviceInfo info_;
  std::unique_ptr<PmDevice> device_;
  std::size_t most_;               // samples between a start and a stop
  std::vector<PmSample> waiting_;  // taken at a pause
  Tally tally_;
  std::size_t since_start_ = 0;  // samples, the dropped one too
  std::uint64_t last_end_ns_ = 0;
  bool started_ = false;
};

struct PmProblem {
  PmRefusal refusal = PmRefusal::kNone;
  std::string text;
};

struct PmDevices {
  std::vector<std::unique_ptr<PmSampler>> samplers;
  std::vector<PmProblem> problems;       // of devices that cannot be sampled, or of all of them
  std::vector<std::string> unknown;      // metrics that the chip does not have, each once; so the others
  std::vector<std::string> not_sampled;  // counters that samples do not offer
  std::vector<std::string> left_out;     // metrics that need a pass of their own
};

// Every device that CUDA shows, for what was asked for (catalog.h, select()). Loads the CUDA driver and CUPTI: to be
// called in a process of its own.
PmDevices open_pm_devices(const std::string& selection, std::chrono::nanoseconds period);

// Why the hardware counters of a GPU may not be read here, and who may hold them: in words, from the system's files.

// Which setting forbids it, and whether this process could have been allowed.
std::string restriction(const SystemFiles& files);
// Programs that are known to hold counters and run here, with their pids; "" where there is none to be seen.
std::string likely_holders(const SystemFiles& files);

}  // namespace llmprof::hw::counters
