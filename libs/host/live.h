#pragma once
// What a running program does now, interval by interval, seen from outside as a recording sees it: nothing is loaded
// into it, stopped or signalled.

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "host/stacks/stack_sampler.h"
#include "host/thread_states.h"

namespace llmprof::host {

struct LiveProcess {
  pid_t pid = 0;
  std::string name, arguments;               // program file; command line
  std::uint64_t user_ns = 0, system_ns = 0;  // in the interval
  std::uint64_t rss_bytes = 0, threads = 0;  // now
  std::uint64_t cpu_ns() const { return user_ns + system_ns; }
};

struct LiveFunction {
  std::string name, file;
  wire::FrameKind kind = wire::FrameKind::kNative;
  std::uint64_t self_ns = 0, total_ns = 0;  // CPU time sampled
};

struct LiveInterval {
  std::uint64_t ns = 0;                        // how long it was
  bool ended = false;                          // the program is over
  std::vector<LiveProcess> processes;          // most CPU time first
  std::vector<LiveFunction> functions;         // most self time first
  std::vector<LiveFunction> python_functions;  // with the native functions they call charged to them
  std::uint64_t sampled_ns = 0;
  std::array<std::uint64_t, kThreadStates> states{}, main_states{};  // of all threads; of the first process's main one
};

// All processes that can be read, with what they used since the last call; the first call knows no use yet.
class LiveProcesses {
 public:
  std::vector<LiveProcess> read(const std::vector<pid_t>& pids);

 private:
  struct Before {
    std::uint64_t start_ticks = 0, user_ns = 0, system_ns = 0;
    std::string name, arguments;
  };
  std::map<pid_t, Before> before_;
};

// Those of this user, of root all; without threads of the kernel.
std::vector<pid_t> own_processes();

class LiveProgram {
 public:
  // `pid` runs. kNotFound if it does not.
  static Result<std::unique_ptr<LiveProgram>> open(pid_t pid, std::uint32_t sample_hz);
  virtual ~LiveProgram() = default;

  // Watches for so long, or until the program ends; `stop` is asked some times a second.
  virtual LiveInterval watch(std::uint64_t ns, const std::function<bool()>& stop) = 0;
  virtual const std::string& no_stacks() const = 0;  // why there are no functions; "" there are
  virtual std::string limits() const = 0;            // what else could not be seen; "" nothing
};

}  // namespace llmprof::host
