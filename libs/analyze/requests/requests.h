#pragma once
// Requests of a run: their latencies, what steps did for them, and the energy of it.

#include <optional>
#include <string>

#include "analyze/context.h"
#include "analyze/requests/requests_summary.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct RequestOptions {
  std::optional<double> price_per_hour;  // of a device; nullopt: costs are unknown
  std::string engine;                    // "vllm@0.19 max_num_seqs=64": over what the run says
};

// The derived tables must be there. Empty where the run has no requests.
Result<Requests> requests_of(const trace::Run& run, const AnalysisContext& analysis,
                             const RequestOptions& options = {});

}  // namespace llmprof::analyze
