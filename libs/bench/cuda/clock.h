#pragma once
// The clock of the multiprocessors over a stretch of the stream: both of the device's clocks at its two ends.

#include "base/result.h"
#include "bench/cuda/context.h"

namespace llmprof::bench::cuda {

class ClockProbe {
 public:
  static Result<ClockProbe> create(Context& context);

  Result<void> begin();  // enqueued
  Result<void> end();    // enqueued; waits there until 50 us lie between: less could not be told from the timer's ticks
  Result<double> mhz();  // of the last stretch, on average; 0: unknown. Waits for the stream

 private:
  Context* context_ = nullptr;
  Buffer stamps_;  // of the beginning, then of the end
};

}  // namespace llmprof::bench::cuda
