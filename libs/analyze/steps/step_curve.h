#pragma once
// How long the steps of each stage took, one after the other: what sparklines and plots over steps show.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "trace/run.h"

namespace llmprof::analyze {

// Durations are without the time in which an earlier step of the same thread was still executing
// (sql/step_curves.sql). More than kMostPoints steps are thinned to the longest of each piece, so that no peak is lost.
struct StepCurve {
  std::string stage;
  std::int64_t steps = 0;                                 // before thinning
  std::int64_t least_ns = 0, median_ns = 0, most_ns = 0;  // of all steps; the median is one that was observed
  std::vector<std::int64_t> begin_ns, duration_ns;
  std::vector<std::int64_t> batch, context;  // 0 unknown
};
inline constexpr std::size_t kMostPoints = 1200;

// One per stage, in the order in which stages begin. The derived tables of the run must be in use.
Result<std::vector<StepCurve>> step_curves(const trace::Run& run);

// Every column cut down to at most `most` steps.
void thin(StepCurve& curve, std::size_t most);

}  // namespace llmprof::analyze
