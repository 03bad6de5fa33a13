#pragma once
// Records of the kernel's sampling rings, decoded. The layout is what perf_events.cpp asks for.

#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "host/stacks/address_space.h"
#include "host/stacks/registers.h"

namespace llmprof::host {

struct PerfSample {
  std::uint64_t period_ns = 0;
  bool in_kernel = false;               // interrupted inside a system call or fault
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

}  // namespace llmprof::host
