#pragma once
// What recording cost the program: counted by the collector, estimated per stage from the measured cost of one event.

#include "analyze/summary.h"
#include "wire/rests.h"

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

inline constexpr double kFlaggedShare = 0.01;  // of a stage's time

// Needs the stages and the coverage of `summary`.
Result<void> fill_cost(const trace::Run& run, Summary& summary);

}  // namespace llmprof::analyze
