#pragma once
// Makes the waterfalls of a run (waterfall_summary.h) from the owners of its steps' time and the floors of its model.

#include <map>
#include <string>
#include <vector>

#include "analyze/context.h"
#include "analyze/model/efficiency.h"
#include "analyze/passes/step_time.h"
#include "analyze/steps/waterfall_summary.h"
#include "model/op.h"

namespace llmprof::analyze {

struct OwnedTime {
  Owner owner = Owner::kGap;
  std::string op;  // "" none
  std::int64_t ns = 0;
};

struct OpFloor {
  std::string op;
  model::OpClass op_class = model::OpClass::kProjection;
  bool in_layer = false;
  double floor_ns = 0;
};

// Everything over all samples of one stage.
struct WaterfallFacts {
  std::string stage, quantity;
  std::int64_t samples = 0;
  std::vector<OwnedTime> times;
  std::vector<OpFloor> operators;
  std::optional<double> floor_ns;  // of the steps as a whole
  std::string floor_why;           // why that is unknown
  std::string layer_prefix;        // "layers": the operator of a whole layer
  bool waits_known = true;         // whether calls that wait were recorded
  bool on_cpu = true;
};

Waterfall waterfall_of(const WaterfallFacts& facts);

// One per stage that the model analysis has formulas for, in the order of their first step.
Result<std::vector<Waterfall>> waterfalls(const trace::Run& run, const AnalysisContext& analysis, const Denominators& by);

}  // namespace llmprof::analyze
