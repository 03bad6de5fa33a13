#pragma once
// The kernel's samples of a process tree (perf_event_open): the rings, and their records decoded.

#include <sys/types.h>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "base/result.h"
#include "host/stacks/address_space.h"
#include "host/stacks/remote_memory.h"

namespace llmprof::host {

// Records of the kernel's sampling rings, decoded. The layout is what PerfEvents asks for.
struct PerfSample {
  std::uint64_t period_ns = 0;
  bool in_kernel = false;               // interrupted inside a system call or fault
  std::span<const std::uint8_t> chain;  // addresses inside the kernel, innermost first, 8 bytes each, with markers
  Registers registers;                  // of the program
  std::span<const std::uint8_t> stack;  // its stack from the stack pointer on; points into the record
};
struct PerfMapping {
  Mapping mapping;
};
struct PerfFork {
  std::uint32_t parent_pid = 0;  // the same pid: a new thread
};
struct PerfExec {};  // the process runs a new program
struct PerfExit {
  bool process = false;  // the main thread
};
struct PerfLost {
  std::uint64_t records = 0;
};

struct PerfRecord {
  std::uint64_t ts_ns = 0;
  std::uint32_t pid = 0, tid = 0;
  std::variant<PerfSample, PerfMapping, PerfFork, PerfExec, PerfExit, PerfLost> content;
};

// One whole record with its header; nothing for kinds that are not wanted or do not fit their size.
std::optional<PerfRecord> decode_record(std::span<const std::uint8_t> record);

// When it was made, without decoding the rest; 0 if unknown.
std::uint64_t time_of_record(std::span<const std::uint8_t> record);

// The registers asked of the kernel, as PERF_REG_X86_… bits.
inline constexpr std::uint64_t kSampledRegisters = 0xff01ff;

// The kernel's sampling of a process tree: one event and one ring per CPU, inherited by every thread and child.
struct PerfOptions {
  std::uint32_t hz = 99;
  std::uint32_t stack_bytes = 56 << 10;
  std::vector<pid_t> threads;  // to sample at once, with all they make from now on; none: see open()
};

class PerfEvents {
 public:
  // Sampling begins when `root` executes a program, or at once with the threads that are given.
  static Result<PerfEvents> open(pid_t root, const PerfOptions& options);
  PerfEvents(PerfEvents&& other) noexcept;
  PerfEvents& operator=(PerfEvents&&) = delete;
  ~PerfEvents();

  std::vector<int> descriptors() const;
  bool sees_kernel() const { return sees_kernel_; }  // time inside the kernel is sampled, too
  // No samples, until it does not rest any more. Holds for all threads that it is inherited by.
  void rest(bool rests) const;
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
  void join_cpu(pid_t thread, int cpu, const PerfOptions& options, const Ring& ring);
  std::uint64_t gather(const Ring& ring);

  std::vector<Ring> rings_;
  std::vector<int> joined_;  // further threads of a running program, which write into the rings
  std::vector<Waiting> waiting_;
  std::vector<std::vector<std::uint8_t>> wrapped_;  // records that cross the end of their ring
  bool sees_kernel_ = true;
};

}  // namespace llmprof::host
