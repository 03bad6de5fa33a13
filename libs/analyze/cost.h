#pragma once
// What recording cost the program: counted by the collector, estimated per stage from the measured cost of one event.

#include "analyze/summary.h"

namespace llmprof::analyze {

inline constexpr double kFlaggedShare = 0.01;  // of a stage's time

// Needs the stages and the coverage of `summary`.
Result<void> fill_cost(const trace::Run& run, Summary& summary);

}  // namespace llmprof::analyze
