#pragma once
// The thread `llmprof-host` of the recorder: watches the program and all processes that come from it, from outside.
// It reads /proc and the kernel's stack samples, and writes the recorder's log. It sends no signal, stops nobody and
// loads nothing into the program. Rates fall by themselves so that its own CPU time stays small.

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "host/host_log.h"
#include "host/model_files.h"
#include "host/proc.h"
#include "host/stacks/stack_sampler.h"
#include "wire/clock.h"

namespace llmprof::host {

struct SamplerOptions {
  std::string log_path;         // to be made
  std::string setting;          // "NAME=value" in the environment of the program: tells its orphans
  std::uint32_t usage_hz = 50;  // readings of memory and CPU time per second, at most
  bool stacks = true;
  StackOptions stack;  // `running`: the program runs already, and is not our child
  wire::Rests rests;
  std::function<void(HostLog&)> also;  // adds to the log what others saw: about twice a second, and at the end
};

struct SamplerOutcome {
  std::uint64_t unreadable = 0;  // processes that could not be read
  std::string no_stacks;         // why stacks were not sampled; "" if they were, or were not asked for
  StackStats stacks;
  std::string no_causes;             // why the causes of waits are not known exactly; "" they are
  std::uint64_t unread_threads = 0;  // beyond those whose states were read
  Contention contention;
  std::vector<ModelFile> model_files;
  std::string problem;  // why the log is not whole; "" if it is
};

class Sampler {
 public:
  // `root` exists and has not become the program yet.
  static Result<std::unique_ptr<Sampler>> create(pid_t root, const SamplerOptions& options);
  virtual ~Sampler() = default;  // ends the thread

  virtual void start() = 0;  // `root` is the program now
  virtual void pause() = 0;  // reads no more until the end
  virtual void stop() = 0;   // `root` ended and was not collected yet: takes its last numbers and ends the thread
  // `root` was collected, unless it is not ours; closes the log.
  virtual SamplerOutcome finish(const rusage& used) = 0;
};

}  // namespace llmprof::host
