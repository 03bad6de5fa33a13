#pragma once
// Processes and memory of a run, as they were seen from outside. docs/format/analysis.md says how gains are computed.

#include "analyze/host_summary.h"
#include "trace/run.h"

namespace llmprof::analyze {

// Fills processes, readings_per_s, memory, peak and gains. The derived tables must be there.
Result<void> fill_host(const trace::Run& run, Host& host);

// Ranges that were open at that moment: of each process the thread with most of them.
Result<std::vector<OpenRanges>> open_at(const trace::Run& run, std::int64_t ts_ns);

}  // namespace llmprof::analyze
