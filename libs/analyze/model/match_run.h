#pragma once
// Modules of BLAS calls, and steps where none are declared, told from the shapes of the calls (passes/match.h): for
// runs whose ranges name no modules. Calls that were captured into a graph are matched once for each graph; a launch of
// a graph that holds one pass over the model is a pass.

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyze/passes/attribute.h"
#include "analyze/passes/classify.h"
#include "model/model.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct RunMatch {
  ShapeMatches calls;
  std::map<std::string, std::string> fused;          // operators of the model that one product did together
  std::map<std::string, double> recomputed;          // operators that backward passes compute again: of their layers
  std::map<std::int32_t, std::int64_t> logits_rows;  // of declared steps that do not say their size and hold one pass
};

// What some processes compute of the model: all of them the same, or each stage of a pipeline its layers.
struct ModelPart {
  const model::Graph* graph = nullptr;
  std::set<std::int64_t> processes;  // ids; empty: all, and it is the only part
};

// Adds inferred steps to `classified` if it has none that are passes over a model.
Result<RunMatch> match_run(const trace::Run& run, const std::vector<ModelPart>& parts,
                           const std::unordered_map<std::int64_t, std::int64_t>& process_of_thread,
                           Classified& classified, trace::Strings& strings);

}  // namespace llmprof::analyze
