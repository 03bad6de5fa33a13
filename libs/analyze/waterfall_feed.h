#pragma once
// Hands the facts of a run that are not kernels to the pass that finds the owners of its steps' time.

#include "analyze/basis.h"
#include "analyze/passes/step_time.h"
#include "trace/run.h"

namespace llmprof::analyze {

StepTimes::Devices step_time_devices(const Basis& basis);

// Copies and waits that begin in the slice.
Result<void> add_copies_and_waits(const trace::Run& run, Window slice, StepTimes& times);

}  // namespace llmprof::analyze
