#pragma once
// Samples of a call on a GPU: the sum of its kernels' times by CUPTI, with CUDA events around each as a cross-check; by
// events alone where CUPTI cannot be had. Launch gaps are hidden by queueing samples behind a kernel that waits.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/cuda/context.h"
#include "bench/measure.h"
#include "bench/operator.h"

namespace llmprof::bench::cuda {

// Empties the L2 cache of what an operator left there: a buffer of twice its size is read through it. Read, not
// written: lines that were written go back to memory while the next kernel runs, and that would be charged to it
// (measured on an H200: reading 30 MB takes 11.5 us after this, 14.5 us after writing as much, 7.9 us from the cache; a
// buffer of four times the cache changes nothing).

class CacheFlush {
 public:
  static Result<CacheFlush> create(Context& context);
  Result<void> enqueue();

 private:
  Context* context_ = nullptr;
  Buffer buffer_;
};

// What is timed: enqueue(set) puts one call on the context's stream, with one of `sets` sets of buffers.
struct Calls {
  std::function<Result<void>(std::size_t set)> enqueue;
  std::size_t sets = 1;
};

class GpuSampler : public Sampler {
 public:
  // `flush`: before each sample the L2 cache is overwritten.
  static Result<std::unique_ptr<GpuSampler>> create(Context& context, Calls calls, bool flush);
  ~GpuSampler() override = default;
  virtual std::string_view timer() const = 0;                   // "CUPTI" or "CUDA events"
  virtual std::string why_no_cupti() const = 0;                 // "" if there is
  virtual std::optional<double> event_seconds() const = 0;      // median by events over the samples so far
  virtual const std::vector<std::string>& kernels() const = 0;  // names of what one call launched, in order
};

// Per call, when `calls` are replayed from a graph that holds many of them: what is left when nothing is launched by
// the host. Gaps between kernels are part of it.
Result<double> graph_seconds(Context& context, const Calls& calls, double limit_seconds);

// Random values of the tensor's fill straight in the device's memory: gigabytes in milliseconds.
Result<void> fill_random(Context& context, Pointer to, const TensorSpec& spec, std::uint64_t seed);

// The clock of the multiprocessors right now, by a kernel that reads both of the device's clocks.
Result<double> clock_mhz(Context& context);

// 0 seconds of work: what a kernel's launch costs by this library's own timers.
struct LaunchCost {
  double host_seconds = 0;        // the host's time to enqueue one empty kernel
  double device_seconds = 0;      // between the ends of empty kernels queued back to back
  double graph_node_seconds = 0;  // per node of a graph of many empty kernels
};
Result<LaunchCost> launch_cost(Context& context);

}  // namespace llmprof::bench::cuda
