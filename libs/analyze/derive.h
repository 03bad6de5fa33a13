#pragma once
// derived/<key>/: steps, attribution, range times and model costs, computed from the facts of a run and written beside
// them.

#include "analyze/context.h"
#include "base/progress.h"
#include "trace/run.h"

namespace llmprof::analyze {

// Makes the derived tables visible in the run; computes and writes them first if they are absent or damaged.
Result<void> ensure_derived(trace::Run& run, const AnalysisContext& analysis, const base::Progress& progress);

}  // namespace llmprof::analyze
