#pragma once

#include "analyze/basis.h"
#include "analyze/summary.h"

namespace llmprof::analyze {

// Summary::counters, from what the summary says already. Asks nothing of a run without counters.
Result<void> fill_counters(const trace::Run& run, const Basis& basis, Summary& summary);

}  // namespace llmprof::analyze
