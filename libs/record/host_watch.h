#pragma once
// The host sampler beside a launch: begins before the program does, ends with it, and its losses are noted.

#include <memory>
#include <string>

#include "host/sampler.h"
#include "record/capture_info.h"
#include "record/supervise.h"

namespace llmprof::record {

struct HostOptions {
  bool on = true;
  std::uint32_t usage_hz = 50;  // readings of memory and CPU time per second, at most
  bool stacks = true;
  std::uint32_t sample_hz = 99;  // stacks per second of CPU time
};

class HostWatch {
 public:
  HostWatch(const HostOptions& options, std::string capture_folder);

  // Adds to what `watch` already does. This object must outlive the launch.
  void attach(Watch& watch);
  void full();  // the recording reached its size
  // After the launch.
  void finish(const Ended& ended, CaptureInfo& info);

 private:
  void create(pid_t root);

  HostOptions options_;
  std::string capture_;
  std::unique_ptr<host::Sampler> sampler_;
  std::string problem_;  // why there is none
  bool full_ = false;
};

}  // namespace llmprof::record
