#pragma once
// Fills Telemetry (telemetry_summary.h) of a summary whose stages are known, and tells its waterfalls what it found.

#include "analyze/basis.h"
#include "analyze/summary.h"

namespace llmprof::analyze {

Result<void> fill_telemetry(const trace::Run& run, const Basis& basis, Summary& summary);

}  // namespace llmprof::analyze
