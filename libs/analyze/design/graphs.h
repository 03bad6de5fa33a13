#pragma once
// The operator graphs of a design: the whole model, and what one device holds of it.

#include <algorithm>
#include <string>
#include <vector>

#include "model/model.h"
#include "model/shard.h"

namespace llmprof::analyze::design {

struct Graphs {
  model::Graph whole;
  std::vector<model::Graph> stages;  // of the pipeline, for the rank that holds most; one without a pipeline
  model::Parallel parallel;

  // More expert than tensor ranks: each of these groups of tensor ranks runs a batch of its own.
  std::int64_t groups() const { return std::max<std::int64_t>(1, parallel.expert / parallel.tensor); }
  std::int64_t devices() const { return parallel.ranks() * groups(); }
};

Result<Graphs> make_graphs(const model::Config& config, const model::Parallel& parallel);

// The sum over the stages of the pipeline.
model::PassCosts device_costs(const Graphs& graphs, const model::Pass& pass, const model::Conditions& conditions);

}  // namespace llmprof::analyze::design
