#pragma once
// What recording cost the program: counted by the collector, estimated per stage from the measured cost of one event.

#include "analyze/summary.h"
#include "wire/clock.h"

namespace llmprof::analyze {

struct TimedStep {
  std::int64_t begin_ns = 0, end_ns = 0;
  double recorded = 1;  // share of its kernels whose times were recorded
};
// Steps outside of rests against those inside, of the same kind: kernels timed, or noted; with `any_kind` of all kinds.
// In the order of their begins; none: too few to say.
std::optional<MeasuredRatio> ratio_of_watching(const std::vector<TimedStep>& steps, const wire::Rests& rests,
                                               bool any_kind);
// Steps with kernels timed against those with launches noted.
std::optional<MeasuredRatio> ratio_of_timing(const std::vector<TimedStep>& steps, const wire::Rests& rests);

// What a kernel that is launched by itself and timed by CUPTI delays its thread: measured in an eager decode loop on an
// H200 with CUDA 13.0 (perf/results/2026-11-17-h200-own-cost.md: 502 kernels a step, 1.075 times as long).
inline constexpr double kTimedKernelNs = 1200;

inline constexpr double kFlaggedShare = 0.01;  // of a stage's time

// Needs the stages and the coverage of `summary`.
Result<void> fill_cost(const trace::Run& run, Summary& summary);

}  // namespace llmprof::analyze
