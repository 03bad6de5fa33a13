#include "analyze/rules/weight_reads.h"

#include <algorithm>

namespace llmprof::analyze {

std::vector<WeightRead> weight_reads(const RuleInput& run, const StageView& view) {
  std::vector<WeightRead> out;
  const StageBytes* costs = find_stage(run.facts.bytes, view.stage->name);
  if (costs == nullptr || !run.summary.peak_bandwidth) return out;
  for (const OperatorBytes& op : costs->operators) {
    if (op.weight_bytes <= 0 || op.flops <= 0) continue;  // tables of embeddings and norms are no product
    for (const Part& part : run.summary.ops) {
      if (part.stage != view.stage->name || part.name != op.op || part.time_ns <= 0) continue;
      const auto time_ns = static_cast<double>(part.time_ns);
      const double bytes_ns = op.bytes() / *run.summary.peak_bandwidth * 1e9;
      const double flops_ns = run.summary.peak_flops ? op.flops / *run.summary.peak_flops * 1e9 : 0;
      out.push_back({.op = op.op,
                     .time_ns = time_ns,
                     .weight_bytes = op.weight_bytes,
                     .bytes = op.bytes(),
                     .flops = op.flops,
                     .of_floor = std::max(bytes_ns, flops_ns) / time_ns,
                     .bandwidth = bytes_ns / time_ns});
    }
  }
  std::sort(out.begin(), out.end(), [](const WeightRead& a, const WeightRead& b) { return a.time_ns > b.time_ns; });
  return out;
}

}  // namespace llmprof::analyze
