#pragma once
// The clock of the multiprocessors from what a kernel read on each of them at two moments. Pure.

#include <cstdint>
#include <span>

namespace llmprof::bench::cuda {

// As sampler.cu writes it, one for each multiprocessor.
struct ClockStamp {
  std::uint64_t cycles = 0;
  std::uint64_t nanoseconds = 0;  // 0: no block ran there
};

// Median over the multiprocessors that have both stamps; 0 when none has, or none lies far enough apart: the device's
// nanoseconds may tick in steps of a microsecond.
double mhz_between(std::span<const ClockStamp> begin, std::span<const ClockStamp> end);

}  // namespace llmprof::bench::cuda
