#pragma once
// Requests of a run: their latencies, what steps did for them, and the energy of it.

#include <array>
#include <optional>
#include <string>
#include <vector>

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

// Every request of every source, by arrival, with the times between its moments; energy is unknown.
Result<std::vector<RequestFigures>> request_figures(const trace::Run& run);

// How the time of a step is divided: a column of step_member, its words and its rule.
struct WorkKind {
  const char *column, *work, *rule;
};
inline constexpr std::array kWorkKinds = {
    WorkKind{"products_ns", "products, norms and other work on tokens", "by new tokens"},
    WorkKind{"weights_ns", "reading the weights", "equal parts"},
    WorkKind{"attention_ns", "attention", "by pairs of tokens"},
    WorkKind{"head_ns", "logits and sampling", "equal parts of those that get a token"},
    WorkKind{"copies_ns", "copies", "by new tokens"},
    WorkKind{"idle_ns", "device idle", "equal parts"},
    WorkKind{"other_ns", "kernels of other threads", "the engine's"},
};

}  // namespace llmprof::analyze
