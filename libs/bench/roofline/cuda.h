#pragma once
// The steps of a GPU's roofline. All run on one Context, one after the other.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/cuda/context.h"
#include "bench/cuda/sampler.h"
#include "bench/roofline/roofline.h"
#include "bench/type.h"

namespace llmprof::bench {

// The device as hw knows it (so that peaks are stored under the same fingerprint), else what CUDA tells.
hw::Device device_of(const cuda::Properties& properties);

std::vector<RooflineStep> cuda_product_steps(cuda::Context& context, const RooflineOptions& options);
std::vector<RooflineStep> cuda_vector_steps(cuda::Context& context, const RooflineOptions& options);
std::vector<RooflineStep> cuda_memory_steps(cuda::Context& context, const RooflineOptions& options);
std::vector<RooflineStep> cuda_transfer_steps(cuda::Context& context, const RooflineOptions& options);
std::vector<RooflineStep> cuda_launch_steps(cuda::Context& context);
// Costs of launches as peaks of the quantity "latency".
std::vector<hw::Peak> launch_latencies(const cuda::LaunchCost& cost);

// ---- what they share ------------------------------------------------------------------------------------------------

// Calls back to back, in batches of about 10 ms. With pauses between the batches a device reaches what it can; without
// them what it sustains, which is less where power limits it.
struct Sustained {
  double seconds = 0;  // of one call: the median over the batches
  std::size_t batches = 0;
  bool pauses = false;
  double clock_mhz = 0;  // right behind them; 0: unknown
  std::string limits;    // why the clock was below its highest: "power limit"; "" nothing said
};
struct Load {
  std::function<Result<void>()> enqueue;  // one call
  double seconds = 0.3;                   // how long, pauses included
  bool clock = true;                      // whether to ask for clock and limits, some 10 ms
  bool pauses = false;                    // 30 ms before every batch
  std::size_t least_batches = 5;
};
Result<Sustained> sustain(cuda::Context& context, const Load& load, const GoOn& go_on);

// "median of 31 batches, at 1560 MHz (power limit)"
std::string sustained_text(const Sustained& run);

// Shapes in which products come nearest to a GPU's peak.

struct PeakShape {
  std::int64_t m = 0, n = 0, k = 0;
};

// Most promising first.
std::span<const PeakShape> peak_shapes(Type type);

}  // namespace llmprof::bench
