#pragma once
// The single measurements of which a CPU's peaks are made. Each takes about the time it is given, longer on a busy
// machine, and asks `go_on` between rounds: false ends it with kInterrupted.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hw/cpu/cpu.h"
#include "hw/peaks.h"

namespace llmprof::hw {

// Threads that begin together, one per CPU: what the peaks of a CPU are measured with.

using PeakClock = std::chrono::steady_clock;

// How much was done between the first thread's begin and the last thread's end.
struct Work {
  double amount = 0;
  double cpu_seconds = 0;
  PeakClock::time_point begin, end;
  double seconds() const { return std::chrono::duration<double>(end - begin).count(); }
};

// The best round of several, and the share of its CPU time that it got: less than all of it on a busy machine.
struct BestRound {
  double per_second = 0;
  double cpu_share = 0;
  std::string_view how;  // the instruction set, the kind of stores
  int rounds = 0;

  void offer(const Work& work, std::int64_t threads, std::string_view with);
  // "2 threads, best of 24 rounds", and the CPU share when it was too small.
  std::string text(std::int64_t threads, std::string_view unit) const;
};

// Each thread on its own CPU when there is one for each: the scheduler never stacks two.
class CpuTeam {
 public:
  explicit CpuTeam(std::int64_t threads);
  std::int64_t size() const { return size_; }
  // Runs work(thread) on all at once; the threads meet before they begin. What each returns is summed.
  Result<Work> run(const std::function<double(std::int64_t)>& work) const;

 private:
  void pin(std::int64_t index) const;
  std::int64_t size_;
  std::vector<int> cpus_;
};

struct Unmap {
  std::size_t bytes = 0;
  void operator()(std::byte* data) const;
};

// A private mapping, freed at the end. Large pages where the system gives them, so that page walks are not measured.
class PeakBuffer {
 public:
  PeakBuffer() = default;
  explicit PeakBuffer(std::size_t bytes);
  std::byte* data() const { return data_.get(); }  // nullptr: the memory was not given
  std::size_t bytes() const { return data_.get_deleter().bytes; }

 private:
  std::unique_ptr<std::byte, Unmap> data_;
};

using GoOn = std::function<bool()>;

inline Peak measured_peak(std::string quantity, std::string type, double value, std::string unit, std::string method) {
  return {std::move(quantity), std::move(type), value, std::move(unit), "measured", std::move(method)};
}

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
