#pragma once
// All rules over one run, their findings ranked by the time they would save.

#include "analyze/basis.h"
#include "analyze/rules/finding.h"
#include "analyze/summary.h"
#include "trace/run.h"

namespace llmprof::analyze {

// `summary` is that of `run`.
Result<Diagnosis> diagnose(const trace::Run& run, const Basis& basis, const Summary& summary);

}  // namespace llmprof::analyze
