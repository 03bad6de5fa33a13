#pragma once
// Threads that begin together, one per CPU: what the peaks of a CPU are measured with.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace llmprof::hw {

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

// A private mapping, freed at the end. Large pages where the system gives them, so that page walks are not measured.
class PeakBuffer {
 public:
  explicit PeakBuffer(std::size_t bytes);
  ~PeakBuffer();
  PeakBuffer(const PeakBuffer&) = delete;
  PeakBuffer& operator=(const PeakBuffer&) = delete;
  std::byte* data() const { return data_; }  // nullptr: the memory was not given
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace llmprof::hw
