#pragma once
// The kernel's sampling of a process tree: one event and one ring per CPU, inherited by every thread and child.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "host/stacks/perf_record.h"

namespace llmprof::host {

struct PerfOptions {
  std::uint32_t hz = 99;
  std::uint32_t stack_bytes = 56 << 10;
};

class PerfEvents {
 public:
  // Sampling begins when `root` executes a program.
  static Result<PerfEvents> open(pid_t root, const PerfOptions& options);
  PerfEvents(PerfEvents&& other) noexcept;
  PerfEvents& operator=(PerfEvents&&) = delete;
  ~PerfEvents();

  std::vector<int> descriptors() const;
  // No samples, until it does not rest any more. Holds for all threads that it is inherited by.
  void rest(bool rests) const;
  bool sees_kernel() const { return sees_kernel_; }  // time in system calls is sampled too
  // Hands over all that waits, by time over all CPUs. Records are valid during their call only.
  void read(const std::function<void(const PerfRecord&)>& visit);

 private:
  struct Ring {
    int descriptor = -1;
    std::uint8_t* memory = nullptr;  // one page of control, then the data
    std::size_t data_bytes = 0;
  };
  struct Waiting {
    std::uint64_t ts_ns;
    std::span<const std::uint8_t> record;
  };
  PerfEvents() = default;
  Result<void> open_cpu(pid_t root, int cpu, const PerfOptions& options, std::size_t data_bytes);
  std::uint64_t gather(const Ring& ring);

  std::vector<Ring> rings_;
  std::vector<Waiting> waiting_;
  std::vector<std::vector<std::uint8_t>> wrapped_;  // records that cross the end of their ring
  bool sees_kernel_ = true;
};

}  // namespace llmprof::host
