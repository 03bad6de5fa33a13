#pragma once
// Hardware counters sampled beside a launch, by a child process, into the recorder's log: a kCounterWindow (scope
// kSample) per sample with its values. What cannot be sampled is noted as a loss. Works where
// CounterOptions::method is kSampled; else nothing happens.

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "host/host_log.h"
#include "record/capture_info.h"
#include "record/counter_child.h"
#include "record/counter_options.h"

namespace llmprof::record {

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
