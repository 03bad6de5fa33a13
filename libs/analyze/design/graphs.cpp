#include "analyze/design/graphs.h"

namespace llmprof::analyze::design {

Result<Graphs> make_graphs(const model::Config& config, const model::Parallel& parallel) {
  Graphs graphs{.whole = model::Graph(config), .stages = {}, .parallel = parallel};
  if (parallel.tensor == 1 && parallel.pipeline == 1 && parallel.expert == 1) {
    graphs.stages.push_back(graphs.whole);
    return graphs;
  }
  // What does not divide evenly goes to the last ranks: theirs is the largest part.
  model::Rank rank{.tensor = parallel.tensor - 1, .pipeline = 0, .expert = parallel.expert - 1};
  for (; rank.pipeline < std::max<std::int64_t>(1, parallel.pipeline); ++rank.pipeline) {
    LLMPROF_LET(const model::Config part, model::shard(config, parallel, rank));
    graphs.stages.emplace_back(part);
  }
  return graphs;
}

model::PassCosts device_costs(const Graphs& graphs, const model::Pass& pass, const model::Conditions& conditions) {
  model::PassCosts sum;
  for (const model::Graph& graph : graphs.stages) {
    const model::PassCosts part = model::total(graph, pass, conditions);
    sum += part;
    for (const auto& [type, flops] : part.flops_by_type) sum.flops_by_type[type] += flops;
  }
  return sum;
}

}  // namespace llmprof::analyze::design
