#pragma once
// A run that holds another tool's totals, held against the analysis of its model.

#include <optional>

#include "analyze/basis.h"
#include "analyze/measured_findings.h"
#include "trace/run.h"

namespace llmprof::analyze {

// Nothing if the run has no totals of operators, or no model is known.
Result<std::optional<MeasuredFindings>> totals_findings(const trace::Run& run, const Basis& basis);

}  // namespace llmprof::analyze
