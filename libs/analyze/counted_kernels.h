#pragma once
// Kernels with hardware counters, all launches of one name together: what a report says of them.

#include "analyze/basis.h"
#include "analyze/imported_summary.h"
#include "trace/run.h"

namespace llmprof::analyze {

Result<std::vector<CountedKernel>> counted_kernels(const trace::Run& run, const Basis& basis);

}  // namespace llmprof::analyze
