#pragma once
// The host sampler beside a launch: begins before the program does, ends with it, and its losses are noted. It also
// writes down what was read of the devices and sampled of their counters.

#include <memory>
#include <optional>
#include <string>

#include "host/sampler.h"
#include "record/launch/launch.h"
#include "record/run/capture.h"
#include "record/watch/counters.h"
#include "record/watch/telemetry.h"

namespace llmprof::record {

struct HostOptions {
  bool on = true;
  std::uint32_t usage_hz = 50;  // readings of memory and CPU time per second, at most
  bool stacks = true;
  std::uint32_t sample_hz = 99;  // stacks per second of CPU time
  bool running = false;          // the program runs already, and is not our child
};

// What to say of a machine that had no core for the program; "" nothing.
std::string contention_text(const host::Contention& seen);

class HostWatch {
 public:
  HostWatch(const HostOptions& options, const TelemetryOptions& telemetry, std::string capture_folder,
            const CounterOptions& counters = {}, const wire::Rests& rests = {});

  // Adds to what `watch` already does. This object must outlive the launch.
  void attach(Watch& watch);
  void poll();  // from time to time while the program runs
  void full();  // the recording reached its size
  // After the launch.
  void finish(const Ended& ended, CaptureInfo& info);

 private:
  void create(pid_t root);
  bool receive();
  void write(host::HostLog& log);
  void write_alone();
  void stop_children();

  HostOptions options_;
  wire::Rests rests_;
  std::string capture_;
  std::unique_ptr<host::Sampler> sampler_;
  std::string problem_;  // why there is none
  bool full_ = false;
  TelemetryWatch telemetry_;
  CounterSampler counters_;
  bool activity_often_ = false;
  std::optional<host::HostLog> own_log_;  // where no sampler has one
};

}  // namespace llmprof::record
