#pragma once
// The functions of a run by stage, from its CPU stack samples.

#include "analyze/host_summary.h"
#include "base/result.h"
#include "trace/run.h"

namespace llmprof::analyze {

// Fills Host::stacks and Host::functions, most self time first. Needs the derived tables.
Result<void> fill_functions(const trace::Run& run, Host& host);

}  // namespace llmprof::analyze
