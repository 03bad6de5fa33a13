#pragma once
// The clock of the multiprocessors over an interval of the stream: both of the device's clocks at its two ends.

#include <cstdint>
#include <span>

#include "base/result.h"
#include "bench/cuda/context.h"

namespace llmprof::bench::cuda {

// The clock of the multiprocessors from what a kernel read on each of them at two moments. Pure.

// As sampler.cu writes it, one for each multiprocessor.
struct ClockStamp {
  std::uint64_t cycles = 0;
  std::uint64_t nanoseconds = 0;  // 0: no block ran there
};

// Median over the multiprocessors that have both stamps; 0 when none has, or none lies far enough apart: the device's
// nanoseconds may tick in steps of a microsecond.
double mhz_between(std::span<const ClockStamp> begin, std::span<const ClockStamp> end);

class ClockProbe {
 public:
  static Result<ClockProbe> create(Context& context);

  Result<void> begin();  // enqueued
  Result<void> end();    // enqueued; waits there until 50 us lie between: less could not be told from the timer's ticks
  Result<double> mhz();  // of the last interval, on average; 0: unknown. Waits for the stream

 private:
  Context* context_ = nullptr;
  Buffer stamps_;  // of the beginning, then of the end
};

}  // namespace llmprof::bench::cuda
