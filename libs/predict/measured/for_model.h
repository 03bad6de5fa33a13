#pragma once
// What has to be measured on a device before a model can be predicted there: `llmprof bench --for MODEL`. The points
// are named by the parts of parts_of(), so that what is measured is what predictions look up. Products have the shapes
// that engines run (q, k and v as one, gate and up as one).

#include <cstdint>
#include <string>
#include <vector>

#include "bench/sweep/sweep.h"
#include "model/shard.h"

namespace llmprof::predict {

struct ForRequest {
  model::Config config;  // of the whole model, with the types it is run with
  model::Parallel parallel;
  bench::DeviceKind device = bench::DeviceKind::kCpu;
  // 0: what suits the device, and no more than the model's own positions.
  std::int64_t max_tokens = 0;   // of one step: rows of products, and the longest chunk
  std::int64_t max_batch = 0;    // sequences that decode together
  std::int64_t max_context = 0;  // tokens of one sequence
};

struct ForPlan {
  std::vector<bench::Point> points;
  std::vector<std::string> left_out;  // what no operator stands for, and what was taken for something else
};

// An error: a model that cannot be split so, sizes under 1 or beyond all reason.
Result<ForPlan> plan_for_model(ForRequest request);

// The default budget: minutes, not hours.
double default_budget_seconds(bench::DeviceKind device);
// Options under which so many points take about this long: each is measured for a shorter time, none is left out.
bench::BenchOptions options_within(double budget_seconds, std::size_t points);

// Rows of products: the sizes of CUDA graphs, thinned out where times are smooth, then each octave in two.
std::vector<std::int64_t> product_rows(std::int64_t most);
// first, twice that, …; `most` itself ends them.
std::vector<std::int64_t> doubling(std::int64_t first, std::int64_t most);

}  // namespace llmprof::predict
