#include "analyze/rules/weight_reads.h"

#include <algorithm>

namespace llmprof::analyze {

std::vector<WeightRead> weight_reads(const Case& run, const StageView& view) {
  std::vector<WeightRead> out;
  const StageBytes* costs = find_stage(run.facts.bytes, view.stage->name);
  if (costs == nullptr || !run.summary.peak_bandwidth) return out;
  for (const OperatorBytes& op : costs->operators) {
    if (op.weight_bytes <= 0 || op.flops <= 0) continue;  // tables of embeddings and norms are no product
    for (const Part& part : run.summary.ops) {
      if (part.stage != view.stage->name || part.name != op.op || part.time_ns <= 0) continue;
      const auto time_ns = static_cast<double>(part.time_ns);
      out.push_back({.op = op.op,
                     .time_ns = time_ns,
                     .weight_bytes = op.weight_bytes,
                     .bytes = op.bytes(),
                     .flops = op.flops,
                     .bandwidth = op.bytes() / time_ns * 1e9 / *run.summary.peak_bandwidth});
    }
  }
  std::sort(out.begin(), out.end(), [](const WeightRead& a, const WeightRead& b) { return a.time_ns > b.time_ns; });
  return out;
}

}  // namespace llmprof::analyze
