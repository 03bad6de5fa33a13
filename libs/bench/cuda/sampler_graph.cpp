// The time of a call inside a replayed graph.

#include <algorithm>
#include <chrono>
#include <vector>

#include "bench/cuda/events.h"
#include "bench/cuda/launch_gate.h"
#include "bench/cuda/sampler.h"
#include "bench/statistics.h"

namespace llmprof::bench::cuda {
namespace {

constexpr double kGraphSeconds = 1e-3;  // of work in one graph: launching it is lost in that
constexpr std::int64_t kMostCalls = 256;
constexpr std::size_t kReplays = 4;  // between two events
constexpr std::size_t kMostRounds = 20;

// One round: queued behind the gate, so that the host's time to launch the graphs is not part of it.
Result<double> round(Context& context, Context::Graph& graph, LaunchGate& gate, EventPairs& events) {
  {
    const OpensGate opens(gate);
    LLMPROF_TRY(gate.close());
    LLMPROF_TRY(events.begin(0));
    for (std::size_t i = 0; i < kReplays; ++i) LLMPROF_TRY(graph.launch());
    LLMPROF_TRY(events.end(0));
  }
  LLMPROF_TRY(context.synchronize());
  return events.seconds(0);
}

}  // namespace

Result<double> graph_seconds(Context& context, const Calls& calls, double limit_seconds) {
  const auto begin = std::chrono::steady_clock::now();
  LLMPROF_LET(LaunchGate gate, LaunchGate::create(context));
  LLMPROF_LET(EventPairs events, EventPairs::create(context, 1));
  LLMPROF_TRY(calls.enqueue(0));  // what a first call does once must not be captured
  LLMPROF_LET(const double estimate, context.time([&] { return calls.enqueue(0); }));
  const auto count =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(kGraphSeconds / std::max(estimate, 1e-6)), 1, kMostCalls);
  LLMPROF_LET(Context::Graph graph, context.capture([&]() -> Result<void> {
    for (std::int64_t i = 0; i < count; ++i) {
      LLMPROF_TRY(calls.enqueue(static_cast<std::size_t>(i) % std::max<std::size_t>(calls.sets, 1)));
    }
    return {};
  }));
  LLMPROF_TRY(graph.launch());  // the first uploads it
  LLMPROF_TRY(context.synchronize());
  std::vector<double> per_call;
  do {
    LLMPROF_LET(const double seconds, round(context, graph, gate, events));
    per_call.push_back(seconds / static_cast<double>(kReplays) / static_cast<double>(count));
  } while (per_call.size() < kMostRounds &&
           std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < limit_seconds);
  return statistics(per_call).median;
}

}  // namespace llmprof::bench::cuda
