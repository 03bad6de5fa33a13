#include <chrono>
#include <vector>

#include "bench/cuda/events.h"
#include "bench/cuda/launch_gate.h"
#include "bench/cuda/sampler.h"
#include "bench/statistics.h"

namespace llmprof::bench::cuda {
namespace {

constexpr int kKernels = 500;  // queued without the host having to wait
constexpr int kRounds = 11;

Result<void> launch_many(Context& context) {
  for (int i = 0; i < kKernels; ++i) LLMPROF_TRY(context.launch("llmprof_timing_empty", {}, {}));
  return {};
}

// Median over rounds, per kernel.
Result<double> median(const std::function<Result<double>()>& round) {
  std::vector<double> seconds;
  for (int i = 0; i < kRounds; ++i) {
    LLMPROF_LET(const double time, round());
    seconds.push_back(time / kKernels);
  }
  return statistics(seconds).median;
}

Result<double> host_round(Context& context) {
  const auto begin = std::chrono::steady_clock::now();
  LLMPROF_TRY(launch_many(context));
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  LLMPROF_TRY(context.synchronize());
  return spent.count();
}

Result<double> gated_round(Context& context, LaunchGate& gate, EventPairs& events,
                           const std::function<Result<void>()>& enqueue) {
  {
    const OpensGate opens(gate);
    LLMPROF_TRY(gate.close());
    LLMPROF_TRY(events.begin(0));
    LLMPROF_TRY(enqueue());
    LLMPROF_TRY(events.end(0));
  }
  LLMPROF_TRY(context.synchronize());
  return events.seconds(0);
}

}  // namespace

Result<LaunchCost> launch_cost(Context& context) {
  LLMPROF_LET(LaunchGate gate, LaunchGate::create(context));
  LLMPROF_LET(EventPairs events, EventPairs::create(context, 1));
  LLMPROF_LET(Context::Graph graph, context.capture([&] { return launch_many(context); }));
  LLMPROF_TRY(graph.launch());
  LLMPROF_TRY(host_round(context));
  LaunchCost cost;
  LLMPROF_LET(cost.host_seconds, median([&] { return host_round(context); }));
  LLMPROF_LET(cost.device_seconds,
              median([&] { return gated_round(context, gate, events, [&] { return launch_many(context); }); }));
  LLMPROF_LET(cost.graph_node_seconds,
              median([&] { return gated_round(context, gate, events, [&] { return graph.launch(); }); }));
  return cost;
}

}  // namespace llmprof::bench::cuda
