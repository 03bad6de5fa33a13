#pragma once
// The one clock of a recording: CLOCK_MONOTONIC_RAW, in nanoseconds. It never jumps and is never slewed.

#include <time.h>

#include <cstdint>

namespace llmprof::wire {

inline std::uint64_t read_clock_ns(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1000000000u + static_cast<std::uint64_t>(time.tv_nsec);
}

inline std::uint64_t now_ns() { return read_clock_ns(CLOCK_MONOTONIC_RAW); }

}  // namespace llmprof::wire
