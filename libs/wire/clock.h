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

// Moments in which recording rests, so that its cost is known from the run itself. They come by the clock, so that all
// who rest, in whatever process, rest at the same time without a word.

struct Rests {
  std::uint64_t from_ns = 0;   // begin of the first, on CLOCK_MONOTONIC_RAW; 0: there are none
  std::uint64_t every_ns = 0;  // from begin to begin
  std::uint64_t lasts_ns = 0;

  bool any() const { return from_ns != 0 && every_ns > lasts_ns && lasts_ns > 0; }
  bool at(std::uint64_t now_ns) const { return any() && now_ns >= from_ns && (now_ns - from_ns) % every_ns < lasts_ns; }
  // When the answer of at() changes next; UINT64_MAX: never.
  std::uint64_t next_change(std::uint64_t now_ns) const {
    if (!any()) return UINT64_MAX;
    if (now_ns < from_ns) return from_ns;
    const std::uint64_t into = (now_ns - from_ns) % every_ns;
    return now_ns - into + (into < lasts_ns ? lasts_ns : every_ns);
  }
};

}  // namespace llmprof::wire
