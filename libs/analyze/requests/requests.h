#pragma once
// Requests of a run: their latencies, what steps did for them, and the energy of it.

#include "analyze/context.h"
#include "analyze/requests/requests_summary.h"
#include "trace/run.h"

namespace llmprof::analyze {

// The derived tables must be there. Empty where the run has no requests.
Result<Requests> requests_of(const trace::Run& run, const AnalysisContext& analysis);

}  // namespace llmprof::analyze
