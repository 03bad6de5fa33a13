#include "analyze/design/memory.h"

#include <algorithm>

namespace llmprof::analyze::design {
namespace {

Memory parts_of(const model::Graph& graph, const Load& load) {
  Memory memory;
  memory.weights = model::weights_bytes(graph);
  memory.kv_per_token = model::kv_bytes_per_token(graph);
  memory.kv = model::kv_cache_bytes(graph, load.batch, load.context);
  memory.activations = std::max(model::activation_bytes(graph, model::prefill(load.batch, load.prompt)),
                                model::activation_bytes(graph, model::decode(load.batch, load.context)));
  return memory;
}

Memory largest_stage(const Graphs& graphs, const Load& load) {
  Memory largest;
  for (const model::Graph& graph : graphs.stages) {
    const Memory memory = parts_of(graph, load);
    if (memory.needed() >= largest.needed()) largest = memory;
  }
  return largest;
}

// The largest value for which `fits`, which turns false once and for all; 0 if it never holds.
template <class Fits>
std::int64_t largest_that(Fits fits, std::int64_t most) {
  std::int64_t good = 0, bad = most + 1;
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace

double needed_bytes(const Graphs& graphs, const Load& load) { return largest_stage(graphs, load).needed(); }

Memory memory_of(const Graphs& graphs, const Load& load, double device_bytes) {
  Memory memory = largest_stage(graphs, load);
  if (!(device_bytes > 0)) return memory;
  memory.device = device_bytes;
  memory.left_for_kv = device_bytes - memory.weights - memory.activations;
  memory.fits = memory.needed() <= device_bytes;
  const auto context_fits = [&](std::int64_t context) {
    return needed_bytes(graphs, {load.batch, load.prompt, context}) <= device_bytes;
  };
  const auto batch_fits = [&](std::int64_t batch) {
    return needed_bytes(graphs, {batch, load.prompt, load.context}) <= device_bytes;
  };
  const std::int64_t positions = graphs.whole.config().positions;
  const std::int64_t longest = largest_that(context_fits, kMost);
  memory.context_ends_with_model = positions > 0 && longest > positions;
  memory.longest_context = memory.context_ends_with_model ? positions : longest;
  memory.largest_batch = largest_that(batch_fits, kMost);
  return memory;
}

model::TrainingMemory training_memory_of(const Graphs& graphs, const Load& load, model::Recompute recompute) {
  model::TrainingMemory largest;
  double recomputed_flops = 0;
  for (const model::Graph& graph : graphs.stages) {
    const model::TrainingMemory memory = model::training_memory(graph, load.batch, load.prompt, recompute);
    recomputed_flops += memory.recomputed_flops;
    if (memory.total() >= largest.total()) largest = memory;
  }
  largest.recomputed_flops = recomputed_flops;
  return largest;
}

}  // namespace llmprof::analyze::design
