#pragma once
// Matrix products of experts (modules `….experts.N`), layer by layer.

#include <cstdint>
#include <string>
#include <vector>

#include "trace/run.h"

namespace llmprof::analyze {

struct StageExperts {
  std::string stage;
  std::int64_t layers = 0, experts = 0;  // experts of a layer that had tokens at any time
  std::int64_t passes = 0;               // of layers: steps x layers
  double most_rows = 0, mean_rows = 0;   // tokens of the busiest expert of a pass, and of a mean one; means over passes
  std::string worst_layer;               // with the highest ratio of the two
  double worst_ratio = 0;
  std::int64_t devices = 0;                // that executed experts
  double time_ns = 0;                      // of their kernels
  double slowest_ns = 0, balanced_ns = 0;  // of the busiest device of each pass, and of a mean one; added up
};

Result<std::vector<StageExperts>> expert_facts(const trace::Run& run);

}  // namespace llmprof::analyze
