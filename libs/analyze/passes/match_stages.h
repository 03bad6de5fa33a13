#pragma once
// Steps of a run that declares none: a matched pass is a step, and its rows tell the stage. Marked inferred everywhere.

#include <unordered_map>
#include <vector>

#include "analyze/passes/classify.h"
#include "analyze/passes/match.h"

namespace llmprof::analyze {

inline constexpr double kMatchedConfidence = 0.9;  // every product of the pass was found, in order
inline constexpr double kWithoutLogits = 0.7;      // but for the logits, which separate passes
inline constexpr double kLeastShareOfPass = 0.8;   // of a pass's products; with fewer it is not taken for a pass

struct InferredSteps {
  std::vector<Step> steps;                 // by begin; `range` is kNone
  std::vector<std::int32_t> step_of_pass;  // parallel to Matches::passes; kNone: not taken for a step
};

double confidence_of(const MatchedPass& pass);

InferredSteps infer_steps(const Matches& matches, const ProcessOfThread& process_of_thread, trace::Strings& strings);

}  // namespace llmprof::analyze
