#pragma once
// The single measurements of which a CPU's peaks are made. Each takes about the time it is given, longer on a busy
// machine, and asks `go_on` between rounds: false ends it with kInterrupted.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hw/cpu.h"
#include "hw/cpu_team.h"
#include "hw/peaks.h"

namespace llmprof::hw {

using GoOn = std::function<bool()>;

// FLOP/s of multiply-adds in registers; `type` is "float32" or "float64". `time` per instruction set that is tried.
Result<Peak> measure_multiply_add(const CpuTeam& team, std::string_view type, std::chrono::milliseconds time,
                                  const GoOn& go_on);

enum class Stream : std::uint8_t { kRead, kWrite, kCopy, kTriad };
inline constexpr Stream kAllStreams[] = {Stream::kRead, Stream::kWrite, Stream::kCopy, Stream::kTriad};

// Where the data of a stream lies.
struct StreamLevel {
  std::string name;                  // "L1"; "" memory
  std::size_t bytes_per_thread = 0;  // all arrays of a stream together; 0: cannot be measured
  std::string why;                   // why not
};

// The data caches from the first level to the last, then memory. In each the threads' data fill half of it; in memory
// they are far larger than all caches, and no more than a quarter of the memory.
std::vector<StreamLevel> stream_levels(const Cpu& cpu, const Device& device, std::int64_t threads);

// "read, L1, one core"
std::string stream_type(Stream stream, const StreamLevel& level, bool one_core);

// Bytes/s as STREAM counts: a copy moves each byte twice, a triad has three arrays; what a cache reads before it can
// write is not counted. The buffer holds level.bytes_per_thread for each thread, and was touched.
Result<Peak> measure_stream(const CpuTeam& team, Stream stream, const StreamLevel& level, const PeakBuffer& buffer,
                            std::chrono::milliseconds time, const GoOn& go_on);
// Each thread touches what it will read: page faults happen now, and pages lie near the thread's memory.
Result<void> touch(const CpuTeam& team, const PeakBuffer& buffer);

}  // namespace llmprof::hw
