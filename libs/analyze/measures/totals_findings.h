#pragma once
// A run that holds another tool's totals, held against the analysis of its model.

#include <optional>

#include "analyze/context.h"
#include "analyze/measures/measured_findings.h"
#include "analyze/summary.h"
#include "trace/run.h"

namespace llmprof::analyze {

Result<MeasuredTable> totals_table(const trace::Run& run);

// Nothing if the run has no totals of operators, or no model is known. What the memory of the one device in the run
// grew by, if the driver was asked, is taken for the weights; it tells their type only where it fits one.
Result<std::optional<MeasuredFindings>> totals_findings(const trace::Run& run, const AnalysisContext& analysis,
                                                        const Summary& summary);

}  // namespace llmprof::analyze
