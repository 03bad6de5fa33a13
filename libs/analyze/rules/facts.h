#pragma once
// What rules need to know beyond the summary, gathered once per run by SQL and native passes. One struct per subject,
// each in a file of its own under facts/.

#include "analyze/context.h"
#include "analyze/rules/facts/subjects.h"
#include "analyze/summary.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct Facts {
  std::optional<bool> torch;  // the program uses PyTorch; nullopt: unknown
  ModelShape model;
  std::vector<DevicePeak> peaks;  // FLOP/s of the busiest device
  std::vector<StageBytes> bytes;
  HostWaits waits;
  std::vector<StageLaunches> launches;
  HostCopies copies;
  std::vector<ProductKernel> products;  // most time first
  std::optional<TotalsFacts> totals;    // only of runs that hold another tool's totals and a known model
  std::vector<StageChains> chains;      // by stage, as the lists below
  std::vector<StageLogits> logits;      // only stages with an operator lm_head
  std::vector<StageOverlap> overlaps;   // only stages with copies or collectives
  LoadFacts load;
  AllocationFacts allocations;
  std::vector<LaunchShape> launch_shapes;  // of kernels, most time first
  std::vector<NeededBytes> needed_bytes;   // of counted kernels that are known matrix products
  std::vector<StageExperts> experts;       // only stages with experts
  InterferenceFacts interference;
  std::vector<GraphBucket> graph_buckets;
  std::vector<StageRanks> ranks;  // empty with fewer than two ranks
};

Result<Facts> gather_facts(const trace::Run& run, const AnalysisContext& analysis, const Summary& summary);

}  // namespace llmprof::analyze
