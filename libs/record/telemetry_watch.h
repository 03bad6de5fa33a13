#pragma once
// Devices read beside a launch, by a child process, into the recorder's log. Where there is none, nothing happens.

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "host/host_log.h"
#include "record/capture_info.h"
#include "record/telemetry_child.h"

namespace llmprof::record {

struct TelemetryOptions {
  bool on = true;
  double hz = 10;  // readings of power and energy per second, at most
  wire::Rests rests{};
};

class TelemetryWatch {
 public:
  explicit TelemetryWatch(const TelemetryOptions& options, TelemetryChild::Open open = hw::open_nvml_source)
      : options_(options), open_(std::move(open)) {}

  void start();  // before this process has other threads
  // Takes what came; true: there is something to write. One thread at a time.
  bool receive();
  void write(host::HostLog& log);  // what was received
  void read_activity_often();      // where counters cannot be read
  void stop();                     // the program ended, or the recording reached its size
  void finish(CaptureInfo& info);  // notes the losses

 private:
  void take(std::vector<TelemetryEvent> events);
  void write_reading(const hw::Reading& reading, host::HostLog& log);

  TelemetryOptions options_;
  TelemetryChild::Open open_;
  std::mutex mutex_;  // the sampler's thread receives, the main thread stops
  std::unique_ptr<TelemetryChild> child_;
  std::vector<TelemetryEvent> received_;
  std::vector<NotedLoss> losses_;
  bool found_ = false;  // a device
  std::uint64_t begin_ns_ = 0;
};

}  // namespace llmprof::record
