#pragma once
// CPU stacks of a program and all its threads and children, sampled by the kernel (perf_event_open) and unwound here,
// outside of them: nothing is loaded, stopped or signalled in the program.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "host/host_log.h"

namespace llmprof::host {

// What was seen, for those who want it at once.
struct SeenFrame {
  std::string function, file;
  wire::FrameKind kind = wire::FrameKind::kNative;
};
struct SeenSample {
  std::uint32_t pid = 0, tid = 0;
  std::uint64_t weight_ns = 0;
  std::span<const SeenFrame* const> frames;  // innermost first
};

struct StackOptions {
  std::uint32_t hz = 99;
  std::uint32_t stack_bytes = 56 << 10;  // of each thread's stack, copied by the kernel per sample; at most 60 KiB
  // Of one core, and of each core of the machine, whichever is more: beyond it only some samples, chosen by chance, are
  // worked on. With what reading usage takes, 2 % of a core on a machine of 16.
  double cpu_share = 0.012, share_per_cpu = 0.0009;
  std::function<void(const SeenSample&)> seen;  // of every sample, beside the log
  bool python = true;                           // read the frames of CPython 3.11 and 3.12
  bool running = false;  // `root` is the program already: its threads, and those of its children, are sampled at once
};

struct StackStats {
  std::uint64_t samples = 0;
  std::uint64_t truncated = 0;                // outer frames are missing
  std::uint64_t lost = 0;                     // the kernel had no room
  std::uint64_t left_out = 0;                 // those worked on stand for them, too
  std::uint64_t python_samples = 0;           // with Python frames
  std::uint64_t python_failed = 0;            // in Python, but some frames show as the interpreter's own functions
  std::uint64_t python_processes_failed = 0;  // whose Python frames could never be read
  std::string python_why;                     // why, of one of them
  std::string kernel_why;                     // why kernel functions are missing or have no names; "" they have
};

class StackSampler {
 public:
  // To be called when `root` exists and has not yet executed the program: sampling begins at its exec (but see
  // `running`). The error says what forbids it and what to do.
  static Result<std::unique_ptr<StackSampler>> open(pid_t root, const StackOptions& options, HostLog& log);
  virtual ~StackSampler() = default;

  // Readable when samples wait.
  virtual std::vector<int> descriptors() const = 0;
  // Reads and unwinds what waits, and adds frames, stacks and samples to the log.
  virtual void drain() = 0;
  // None are taken until it is told that it does not rest any more.
  virtual void rest(bool rests) = 0;
  // So long samples may gather: so many come that waking for each would cost more than working on them, or none is in a
  // hurry. A ring has room for that.
  virtual std::chrono::milliseconds may_gather() const = 0;
  virtual StackStats stats() const = 0;
};

}  // namespace llmprof::host
