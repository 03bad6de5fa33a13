#pragma once
// Training loops of a run that says nothing of its steps and makes no call that could tell them: from the functions on
// its stack samples (below).

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyze/names/grammar.h"
#include "analyze/passes/classify.h"
#include "analyze/sections/host_summary.h"
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
                                        const ProcessOfThread& process_of_thread, trace::Strings& strings);

// Fills Host::sampled_stages from the derived tables.
Result<void> fill_sampled_stages(const trace::Run& run, Host& host);

// A training loop told from stack samples alone: functions whose names say forward and backward, called in turn by the
// same function. For programs whose matrix products are compiled in, so that there is no call of a library to see.
// docs/format/analysis.md states the rules in words.

enum class LoopPart : std::uint8_t { kNothing, kForward, kBackward, kOptimizer, kForwardOnly };
inline constexpr std::size_t kLoopParts = 5;
std::string_view loop_stage(LoopPart part);

// What the name of a function says; kForwardOnly for validation and generation.
LoopPart loop_part(std::string_view function, const std::vector<RangePattern>& patterns);

struct LoopSample {
  std::int64_t at_ns = 0, weight_ns = 0;
  LoopPart part = LoopPart::kNothing;
};

struct LoopPass {
  LoopPart part = LoopPart::kNothing;
  std::int64_t begin_ns = 0, end_ns = 0, samples = 0;
};

struct SampledLoop {
  std::vector<LoopPass> passes;  // by time
  std::int64_t changes = 0;      // from forward to backward
  // How often the loop came to each part; none where samples are too far apart to tell, or it never did.
  std::array<std::optional<std::int64_t>, kLoopParts> counted;
  bool countable = false;  // the passes are those of the program: none can have fallen between two samples
};

// `samples` of one thread by time. Forward passes that no backward pass follows become kForwardOnly in them. None: too
// few samples, or they do not alternate.
std::optional<SampledLoop> find_loop(std::vector<LoopSample>& samples);

}  // namespace llmprof::analyze
