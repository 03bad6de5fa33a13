#pragma once
// Hands the facts of a run that are not kernels to the pass that finds the owners of its steps' time.

#include "analyze/context.h"
#include "analyze/passes/step_time.h"
#include "trace/run.h"

namespace llmprof::analyze {

StepTimes::Devices step_time_devices(const AnalysisContext& analysis);

// Copies and waits that begin in a slice of time.
struct CopiesAndWaits {
  trace::Columns copies, waits;
};
Result<CopiesAndWaits> read_copies_and_waits(const trace::Run& run, Window slice);
void add_copies_and_waits(const CopiesAndWaits& read, StepTimes& times);

}  // namespace llmprof::analyze
