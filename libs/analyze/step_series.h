#pragma once
// The training steps of a run, one after the other.

#include <vector>

#include "analyze/summary.h"

namespace llmprof::analyze {

// One series per thread that trains, in the order of processes and threads.
Result<std::vector<StepSeries>> training_series(const trace::Run& run);

// The step whose total is the median: a step that really happened (nearest rank). The series must not be empty.
const TrainingStep& median_step(const StepSeries& series);

}  // namespace llmprof::analyze
