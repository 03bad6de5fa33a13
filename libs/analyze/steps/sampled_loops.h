#pragma once
// Training loops of a run that says nothing of its steps and makes no call that could tell them: from the functions on
// its stack samples (passes/sampled_training.h).

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyze/sections/host_summary.h"
#include "analyze/names/grammar.h"
#include "analyze/passes/classify.h"
#include "base/result.h"
#include "trace/rows.h"
#include "trace/run.h"
#include "trace/strings.h"

namespace llmprof::analyze {

struct SampledLoops {
  struct Place {
    trace::Name stage, part;
  };
  std::vector<Step> steps;  // by begin; empty where samples are too far apart to tell one from the next
  std::vector<trace::SampledStageRow> rows;
  std::unordered_map<std::int64_t, Place> places;  // by id of the sample
};

// Nothing where a GPU works: stacks then show who launches, not what is computed.
Result<SampledLoops> find_sampled_loops(const trace::Run& run, const std::vector<RangePattern>& patterns,
                                        const std::unordered_map<std::int64_t, std::int64_t>& process_of_thread,
                                        trace::Strings& strings);

// Fills Host::sampled_stages from the derived tables.
Result<void> fill_sampled_stages(const trace::Run& run, Host& host);

}  // namespace llmprof::analyze
