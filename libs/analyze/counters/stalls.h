#pragma once
// Samples of warps by kernel, reason and place.

#include "analyze/sections/counters_summary.h"
#include "base/result.h"
#include "trace/run.h"

namespace llmprof::analyze::counters {

Result<void> fill_stalls(const trace::Run& run, Counters& counters);

}  // namespace llmprof::analyze::counters
