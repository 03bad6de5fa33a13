#pragma once
// A process of its own that reads devices and tells this one through a pipe (watch_child.h).

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "hw/telemetry.h"
#include "record/watch_child.h"
#include "wire/clock.h"

namespace llmprof::record {

struct TelemetryRates {
  double power_hz = 10;
  double state_hz = 1;  // of everything else
  double share = 0.03;  // of one core, at most, for all of it: readings come less often where they cost more
  wire::Rests rests;
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

  // Events that came by now; does not wait.
  std::vector<TelemetryEvent> receive();
  int descriptor() const { return child_->descriptor(); }  // ready to be read when there are some
  bool ended() const { return child_->ended(); }           // nothing more will come
  // From now on what the units of the devices do is read ten times a second: nothing else will tell.
  void read_activity_often() { child_->tell(kActivityOften); }
  // Takes a last reading and ends. False: it did not answer in time and was abandoned.
  bool stop(std::chrono::milliseconds patience = std::chrono::milliseconds(100)) { return child_->stop(patience); }

  static constexpr char kActivityOften = 'a';

 private:
  explicit TelemetryChild(std::unique_ptr<WatchChild> child) : child_(std::move(child)) {}

  std::unique_ptr<WatchChild> child_;
};

}  // namespace llmprof::record
