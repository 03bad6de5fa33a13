#pragma once
// What recording itself cost. Every report states it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmprof::analyze {

// How much longer steps are with something than without it, told from steps that follow each other.
struct MeasuredRatio {
  double ratio = 1, low = 1, high = 1;  // low, high: 95 % interval of the mean
  std::int64_t stretches = 0;           // each held against what was right before and after it
  std::int64_t steps = 0;               // in these stretches
};

struct StageCost {
  std::string name;  // of the stage
  std::int64_t range_events = 0, gemm_events = 0;
  std::optional<double> delay_ns;  // events times the measured cost of one
  std::optional<double> share;     // of the stage's time
  bool flagged = false;            // more than 1 %
  // Measured in this run. `measured` is what of these was measured, together, for the mean step.
  std::optional<MeasuredRatio> measured_watching;  // against steps in rests of the recorder
  std::optional<MeasuredRatio>
      measured_kernels;      // steps whose kernels were timed, against those whose launches were noted
  double kernels_share = 0;  // of the steps, with kernels timed
  std::optional<MeasuredRatio> measured;
};

struct CollectorCost {
  bool known = false;  // what the collectors counted
  std::int64_t range_events = 0, gemm_events = 0;
  std::int64_t gpu_events = 0;      // calls of CUDA and its BLAS that were noted; not in delay_ns
  std::int64_t timed_kernels = 0;   // launched one by one, and timed by CUPTI
  std::optional<double> timing_ns;  // of these, at kTimedKernelNs each; none: the run's own ratios say more
  std::int64_t log_bytes = 0;
  std::int64_t writer_cpu_ns = 0;                       // of the collector's threads in the processes
  std::optional<double> writer_share;                   // of one core, over the wall time
  std::optional<std::int64_t> recorder_cpu_ns;          // of llmprof beside them, while they ran
  std::optional<double> range_event_ns, gemm_event_ns;  // measured on this machine
  std::optional<double> delay_ns, delay_share;          // of all events; of the wall time
  bool rests_of_everything =
      false;  // in rests nothing of the GPU was recorded either: `measured_watching` is all of the cost
  std::vector<StageCost> stages;
  std::string why;  // why something above is unknown
};

}  // namespace llmprof::analyze
