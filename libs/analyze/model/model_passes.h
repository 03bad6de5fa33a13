#pragma once
// The kinds of pass a run made over its model, and what each must cost (libs/model).

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/passes/classify.h"
#include "hw/roof.h"
#include "model/model.h"
#include "trace/rows.h"

namespace llmprof::analyze {

// The pass of a step; nullopt if it does not say its size, or its stage has no formula (load, …). An
// optimizer step needs no size.
std::optional<model::Pass> pass_of(const StepSize& size, std::string_view stage);
bool has_formula(std::string_view stage);

// The same where sequences differ in length and only sums are known. Attention costs least where sequences are alike,
// and most where one of them has nearly all tokens; for windows it may be the other way round, so that both are costed.
struct PassBounds {
  model::Pass alike;
  std::optional<model::Pass> apart;  // nullopt: nothing bounds the contexts
};
std::optional<PassBounds> bounds_of(const StepSize& size, std::string_view stage);

struct ModelPasses {
  std::vector<std::optional<std::int64_t>> pass_of_step;  // pass_id
  std::vector<trace::ModelOpRow> rows;
};

// The model that a step of a process is a pass over: its rank's part. nullptr: unknown.
using GraphOfProcess = std::function<const model::Graph*(std::int64_t process_id)>;

// `fused`: operators whose work another one does, q_proj -> qkv_proj; their costs are added up under its name.
// `recomputed`: operators that backward passes compute again, and the share of their layers. `roofline`: of the device.
ModelPasses model_passes(const std::vector<Step>& steps, const GraphOfProcess& graph_of, std::int64_t on_chip_bytes,
                         const std::map<std::string, std::string>& fused, trace::Strings& strings,
                         const std::map<std::string, double>& recomputed = {}, const hw::Roofline& roofline = {});

}  // namespace llmprof::analyze
