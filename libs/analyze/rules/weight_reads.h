#pragma once
// The operators of a stage that read weights: what they took, what they must move, how fast they moved it.

#include <string>
#include <vector>

#include "analyze/rules/stage_view.h"

namespace llmprof::analyze {

struct WeightRead {
  std::string op;
  double time_ns = 0, weight_bytes = 0, bytes = 0, flops = 0;  // over all steps
  double of_floor = 0;   // the longer of bytes / bandwidth and FLOPs / peak, of its time
  double bandwidth = 0;  // bytes / time, of the peak
};

// Those with a measured time and a known peak bandwidth, most time first.
std::vector<WeightRead> weight_reads(const RuleInput& run, const StageView& view);

}  // namespace llmprof::analyze
