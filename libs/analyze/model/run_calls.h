#pragma once
// The BLAS calls of a run as the matching passes want them, and the passes that launches of graphs make.

#include <unordered_map>
#include <vector>

#include "analyze/passes/match.h"
#include "base/result.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct RunCalls {
  Calls calls;                        // by thread, then by time
  std::vector<std::int64_t> gemm_id;  // of each
};

// Calls that executed when they were made, the first of them if `blocks` is not 0.
Result<RunCalls> read_calls(const trace::Run& run,
                            const std::unordered_map<std::int64_t, std::int64_t>& process_of_thread, int blocks = 0);

// Calls of each graph that was launched; the graph stands in place of the thread.
Result<RunCalls> read_captured_calls(const trace::Run& run);

// A graph that holds one pass over the model makes one with every launch. Returns for each pass that was matched where
// it is now: passes come by thread, then by time. `others` are put among them.
Result<std::vector<std::int32_t>> add_launched_passes(const trace::Run& run, const Matches& captured,
                                                      const std::vector<MatchedPass>& others, Matches& matches);

}  // namespace llmprof::analyze
