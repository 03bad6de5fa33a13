#pragma once
// Modules and operators of the model: their time, and what they must cost.

#include "analyze/efficiency.h"
#include "analyze/summary.h"

namespace llmprof::analyze {

// Fills modules and ops; summary.stages must have their times.
Result<void> fill_parts(const trace::Run& run, const Denominators& by, Summary& summary);

}  // namespace llmprof::analyze
