#pragma once
// Power, clocks and activity, read beside a launch by a child process and written into the recorder's log.

#include <chrono>
#include <functional>
#include <memory>

#include "base/result.h"
#include "hw/telemetry/telemetry.h"
#include "record/watch/device_watch.h"
#include "wire/clock.h"

namespace llmprof::record {

struct TelemetryRates {
  double power_hz = 10;
  double state_hz = 1;  // of everything else
  double share = 0.03;  // of one core, at most, for all of it: readings come less often where they cost more
  wire::Rests rests;
};

using TelemetryOpen = std::function<Result<std::unique_ptr<hw::TelemetrySource>>()>;

// A process of its own that reads devices; `open` runs there. To be called while this process has one thread.
Result<std::unique_ptr<WatchChild>> start_telemetry(const TelemetryOpen& open, const TelemetryRates& rates);

// Devices read beside a launch, by a child process, into the recorder's log. Where there is none, nothing happens.
struct TelemetryOptions {
  bool on = true;
  double hz = 10;  // readings of power and energy per second, at most
  wire::Rests rests{};
};

class TelemetryWatch : public DeviceWatch {
 public:
  // A driver may take so long to wake up, and a busy machine to look for one: a short program has missed nothing.
  explicit TelemetryWatch(const TelemetryOptions& options, TelemetryOpen open = hw::open_nvml_source)
      : DeviceWatch({.subject = "telemetry",
                     .failed = trace::Loss::kTelemetryStopped,
                     .patience = std::chrono::milliseconds(100),
                     .may_be_silent = std::chrono::seconds(2),
                     .first_device = 0}),
        options_(options),
        open_(std::move(open)) {}
  void start();  // before this process has other threads
  // From now on what the units of the devices do is read ten times a second, where counters cannot be read: nothing
  // else will tell.
  void read_activity_often();

 private:
  TelemetryOptions options_;
  TelemetryOpen open_;
};

}  // namespace llmprof::record
