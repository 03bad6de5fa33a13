#pragma once
// A process of its own that reads devices and tells this one through a pipe. A driver that hangs takes only that
// process with it: it is asked to end, killed when it does not, and never waited for. It holds none of our files open.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "hw/telemetry.h"

namespace llmprof::record {

struct TelemetryRates {
  double power_hz = 10;
  double state_hz = 1;  // of everything else
  double share = 0.03;  // of one core, at most, for all of it: readings come less often where they cost more
};

struct TelemetryEvent {
  enum class Kind : std::uint32_t {
    kDevice,   // there is this device; before its first reading
    kReady,    // that were all devices
    kReading,  //
    kNote,     // `text` is for people
    kSlowed,   // at the end: what was read less often than wanted
    kCost,     // at the end: what the calls of one kind took
    kNone,     // there is nothing to read; `text` says why
  };
  Kind kind = Kind::kReading;
  hw::Reading reading;
  hw::TelemetryDevice device;
  std::string text;
};

class TelemetryChild {
 public:
  using Open = std::function<Result<std::unique_ptr<hw::TelemetrySource>>()>;

  // Forks; `open` runs in the child. To be called while this process has one thread.
  static Result<std::unique_ptr<TelemetryChild>> start(const Open& open, const TelemetryRates& rates);
  ~TelemetryChild();
  TelemetryChild(const TelemetryChild&) = delete;
  TelemetryChild& operator=(const TelemetryChild&) = delete;

  // Events that came by now; does not wait.
  std::vector<TelemetryEvent> receive();
  int descriptor() const { return events_; }  // ready to be read when there are some
  bool ended() const { return ended_; }       // nothing more will come
  // Takes a last reading and ends. False: it did not answer in time and was abandoned.
  bool stop(std::chrono::milliseconds patience = std::chrono::milliseconds(100));

 private:
  TelemetryChild(pid_t pid, int events, int stop) : pid_(pid), events_(events), stop_(stop) {}
  bool read_some();

  pid_t pid_;
  int events_, stop_;
  bool ended_ = false;
  std::string bytes_;  // received, not yet taken
};

}  // namespace llmprof::record
