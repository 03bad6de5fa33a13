#pragma once
// Sizes for which CUDA graphs were captured, and the sizes they were launched for.

#include <cstdint>
#include <string>
#include <vector>

#include "trace/run.h"

namespace llmprof::analyze {

struct GraphBucket {  // launches of graphs of one size for steps of one size
  std::string stage;
  std::int64_t captured_rows = 0;  // rows of most matrix products of the graph
  std::int64_t rows = 0;           // batch x tokens of the step
  std::int64_t launches = 0, time_ns = 0, median_ns = 0;
};

// Only of steps that say their size and launch one graph.
Result<std::vector<GraphBucket>> graph_buckets(const trace::Run& run);

}  // namespace llmprof::analyze
