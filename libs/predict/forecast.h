#pragma once
// A workload on an engine, before it runs: the engine's scheduler over steps whose times are known, and how wrong that
// may be.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hw/resolve.h"
#include "serving/metrics.h"
#include "predict/tables/backtest.h"
#include "predict/tables/memory.h"
#include "predict/tables/step_cost.h"

namespace llmprof::predict {

struct Calibration;  // measured/calibration.h

struct ServingInput {
  model::Config config;             // of the whole model
  std::string config_text, origin;  // its config.json, and where it is from
  model::Parallel parallel;
  std::int64_t replicas = 1;
  hw::DeviceAndPeaks device;               // without peaks where only tables know it
  OperatorTables tables;                   // may be empty: the bare roof
  std::optional<model::Config> unchanged;  // the model before Deployment::changes; nullopt: there are none
  OperatorTables other_tables;  // of a changed model, if its operators follow their floors in the other way: intervals
  HostCosts host;
  double device_factor = 1;                        // of all device times
  std::shared_ptr<const Calibration> calibration;  // where host and device_factor are from, and how well known
  AttentionMode attention = AttentionMode::kJoint;
  serving::EngineRules rules;  // num_gpu_blocks 0: by the engine's rule
  serving::Workload workload;
  serving::Slo slo;
  serving::Since since = serving::Since::kSent;
  std::vector<std::string> notes;  // of what was found for it
};

// How much shorter and longer steps may be than predicted, as factors, and why.
struct StepError {
  double least = 1, most = 1;
  std::string why;
};

struct ServingForecast {
  serving::EngineRules rules;  // with the blocks that were used
  bool blocks_derived = false;
  MemoryNeeds memory;
  serving::Simulation simulation;
  serving::Metrics metrics;
  // The least and the most of every figure, over predictions with all steps as short and as long as they may be, and
  // with as few and as many blocks where their number was not given.
  serving::Metrics low, high;
  StepError error;
  std::vector<OperatorError> operator_errors;  // of the tables, each point from its neighbours
  BasisTimes stands_on;
  std::vector<std::string> notes;
};

// How the replicas of this input run together.
serving::SimulateOptions simulate_options(const ServingInput& input);

// The cost of steps of this model on this device.
Result<std::unique_ptr<TableStepCost>> step_cost_of(const ServingInput& input);

// Steps of another cost, all shorter or longer by a factor. `cost` must outlive it.
class ScaledCost final : public StepCost {
 public:
  ScaledCost(StepCost& cost, double factor) : cost_(cost), factor_(factor) {}
  StepTime of(const Batch& batch) override {
    const StepTime time = cost_.of(batch);
    return {time.device_ns * factor_, time.host_ns * factor_};
  }

 private:
  StepCost& cost_;
  double factor_;
};

// A count of KV blocks that follows from the engine's rule may be wrong by this share.
inline constexpr double kBlocksUncertain = 0.05;
// What a rank needs, and the KV blocks: as the rules of `out` say, else by the engine's rule. A model that does not fit
// is an error; `out.memory` is there even then.
Result<void> settle_blocks(const ServingInput& input, ServingForecast& out);

// Errors: a model that does not fit (with what is missing), tables of another model or device, settings that exclude
// each other.
Result<ServingForecast> forecast_serving(const ServingInput& input);

// What the back-test of the operators says of times that stand on these.
StepError step_error(const std::vector<OperatorError>& operators, const BasisTimes& stands_on);

}  // namespace llmprof::predict
