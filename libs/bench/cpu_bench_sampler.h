#pragma once
// Samples of a call on a CPU, by the monotonic clock.

#include <functional>
#include <optional>
#include <string>

#include "bench/bench.h"
#include "bench/cpu_bench_buffers.h"
#include "bench/measure.h"

namespace llmprof::bench {

// What a CPU sampler times: call(set) with one of `sets` sets of buffers.
struct CpuCalls {
  std::function<void(std::size_t set)> call;
  std::size_t sets = 1;
  // Cold only: called before a round through the sets begins, not timed. Empty: a round is long enough to empty the
  // cache.
  std::function<void()> flush;
};

class CpuSampler : public Sampler {
 public:
  CpuSampler(CpuCalls calls, Cache cache) : calls_(std::move(calls)), cache_(cache) {}
  Result<std::vector<Sample>> next(std::size_t wanted) override;

  std::string timer() const;  // "clock", "clock, 12 calls at a time"
  // Of the time it sampled, that the system gave this thread a CPU: under 1 when other programs had it.
  double cpu_share() const { return wall_seconds_ > 0 ? cpu_seconds_ / wall_seconds_ : 1; }

 private:
  double cold_sample();
  double hot_sample();
  void choose_calls_per_sample();

  CpuCalls calls_;
  Cache cache_;
  std::size_t next_set_ = 0;
  std::optional<std::size_t> calls_per_sample_;  // hot: known after the first
  double cpu_seconds_ = 0, wall_seconds_ = 0;
};

// Pure: how many calls of this length make one sample.
std::size_t calls_per_sample(double call_seconds);

}  // namespace llmprof::bench
