#pragma once
// Power, clocks and activity, read beside a launch by a child process and written into the recorder's log.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "host/host_log.h"
#include "hw/telemetry/telemetry.h"
#include "record/run/capture.h"
#include "record/watch/watch_child.h"
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

// A process of its own that reads devices and tells this one through a pipe (watch_child.h).
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

// Devices read beside a launch, by a child process, into the recorder's log. Where there is none, nothing happens.
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
