#pragma once
// An engine under a workload, event by event: requests arrive, replicas schedule, steps take what StepCost says. One
// thread; the same input gives the same result.
//
// Time of a step. Without asynchronous scheduling the host prepares a step, the device computes it, the tokens are
// handed out, and so on: a step takes host plus device time. With it two steps may be under way: when one is complete
// the host prepares the step after the next while the device computes the next, so host time shows only where it is the
// longer one, and a request that arrives waits for a step more (vllm/v1/engine/core.py, step_with_batch_queue). The
// engine takes requests in between steps: queued_ns is that moment, arrival_ns when the request was sent.

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "serving/batch.h"
#include "serving/engine.h"
#include "serving/quantiles.h"
#include "serving/scheduler.h"
#include "serving/workload.h"

namespace llmprof::serving {

enum class Routing : std::uint8_t {
  kRoundRobin,
  kLeastLoaded,  // as vLLM's data parallel router: 4 x waiting + running requests, the first of the lowest
};

// A step as it is launched; the batch lives as long as the call.
struct LaunchedStep {
  std::int32_t replica = 0;
  double begin_ns = 0, device_ns = 0;  // of the device's work
  const Batch& batch;
};

struct SimulateOptions {
  std::int64_t replicas = 1;
  Routing routing = Routing::kLeastLoaded;
  // Replicas exchange tokens between their experts, as those of vLLM do for mixtures of experts: a step of all ends
  // with the slowest, and all launch as the least graph-like of them, padded to the largest.
  bool lockstep = false;
  std::int64_t most_steps = 500'000'000;  // beyond this the simulation is an error
  std::size_t most_step_records = std::size_t{1}
                                  << 20;             // beyond this every second is dropped, again and again; 0: none
  std::function<void(const LaunchedStep&)> on_step;  // sees every step, in the order in which they are launched
};

// Times of a request; NaN where it was not reached (a rejected request).
struct RequestResult {
  double arrival_ns = 0, queued_ns = 0, scheduled_ns = 0, first_token_ns = 0, last_token_ns = 0;
  std::int32_t prompt_tokens = 0, output_tokens = 0;
  std::int32_t cached_tokens = 0;  // of the prompt, when it was first scheduled
  std::int32_t preemptions = 0;
  std::int32_t replica = 0;
  Rejection rejection = Rejection::kNone;
};

struct StepRecord {
  double begin_ns = 0;  // of the device's work
  double device_ns = 0, host_ns = 0;
  std::int64_t blocks_used = 0;
  std::int32_t tokens = 0, padded_tokens = 0;
  std::int32_t chunks = 0, decodes = 0;
  std::int32_t running = 0, waiting = 0, preempted = 0;
  std::int32_t replica = 0;
  Launch launch = Launch::kEager;
};

struct Simulation {
  std::vector<RequestResult> requests;  // in the order of the workload
  std::vector<StepRecord> steps;
  std::int64_t step_stride = 1;  // steps holds every one of so many
  Samples itl_ns;                // between tokens of a request
  std::int64_t step_count = 0;
  std::int64_t graph_steps = 0, piecewise_steps = 0, eager_steps = 0;
  std::int64_t preemptions = 0;
  std::array<std::int64_t, 4> rejected{};  // by Rejection
  double begin_ns = 0, end_ns = 0;         // first arrival, last token
  double device_busy_ns = 0;               // of all replicas
  std::int64_t blocks_usable = 0;          // of a replica
  std::int64_t blocks_used_peak = 0;       // of the fullest replica
  double blocks_used_mean = 0;             // of a replica, over the time its steps took
};

// Errors: rules without num_gpu_blocks or that exclude each other, a step that takes no finite time.
Result<Simulation> simulate(const EngineRules& rules, const Workload& workload, StepCost& cost,
                            const SimulateOptions& options = {});

// "longer than max_model_len", …
std::string_view reason_text(Rejection rejection);

}  // namespace llmprof::serving
