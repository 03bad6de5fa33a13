#pragma once
// One prefill and some decode steps of a model: TTFT, TPOT, what each operator takes, what other ways of running it
// would take, memory and energy; and all of it as a run.

#include <optional>
#include <string>
#include <vector>

#include "predict/run/predicted_run.h"
#include "predict/run/variants.h"
#include "predict/tables/memory.h"
#include "predict/tables/step_cost.h"

namespace llmprof::predict {

// What a device draws while it works.
struct Power {
  double watts = 0;
  bool bound = false;  // a limit of the device (its TDP), not what it drew
  std::string source;
};

// One step, priced in another way than by the best implementation of each operator.
struct PricedStep {
  std::vector<OpTime> ops;
  double host_ns = 0, step_ns = 0;  // what the device waits for; all of it
  double mean_step_ns = 0;          // with a host that is slow now and then
  std::vector<Execution> work;
};
class StepPricer {
 public:
  virtual ~StepPricer() = default;
  virtual const std::vector<Place>& places() const = 0;
  virtual PricedStep price(const Batch& batch) const = 0;
  virtual std::vector<Variant> variants(const Batch& batch) const = 0;
  virtual std::string source() const = 0;  // of its times, in words
};

struct StepsInput {
  std::int64_t batch = 1;
  std::int64_t prompt = 0;   // tokens of each request; 0: no prefill
  std::int64_t context = 0;  // of the first decode step, its new token included; 0: the prompt and one more
  std::int64_t decode_steps = 32;
  Launch launch = Launch::kGraph;                    // of decode steps; prompts are launched one by one
  bool host_hidden = false;                          // the engine prepares the next step while the device works
  std::optional<Power> power;                        // none: energy is not told
  std::optional<Power> prefill_power, decode_power;  // measured in such steps; none: `power`
  const StepPricer* program = nullptr;               // how a program computes it; nullptr: the best implementation

  // For the run.
  hw::Device device;
  std::vector<hw::Peak> peaks;
  std::string config_text, model_origin;
  model::Types types;
  std::vector<std::string> command;
};

// The mean step of a stage.
struct StageTimes {
  std::string stage;
  std::int64_t steps = 0;
  double device_ns = 0, host_ns = 0;
  double step_ns = 0;              // from one step to the next: with the host's time unless that is hidden
  std::optional<double> floor_ns;  // of the whole step: the longer of its FLOPs and its bytes; none: a peak is unknown
  std::string bound;               // "compute", "memory", "unknown"
  double flops = 0, bytes = 0;
  BasisTimes stands_on;     // of operators
  double assumed_ns = 0;    // of device_ns: links between ranks and launches, by stated costs
  std::vector<OpTime> ops;  // one per part, in the order of a step
  std::vector<Variant> variants;
};

struct StepsMemory {
  MemoryNeeds needs;    // beside the cache
  double kv_bytes = 0;  // at the last step
  double total_bytes = 0;
  double device_bytes = 0;  // 0: not known
  bool fits() const { return device_bytes <= 0 || total_bytes <= device_bytes; }
};

struct StepsEnergy {
  std::optional<double> prefill_j;  // of the whole batch
  std::optional<double> decode_j_per_token;
  // What they were computed with; bounds make these bounds, too.
  std::optional<Power> prefill_power, decode_power;
};

struct StepsPrediction {
  std::optional<double> ttft_ns;                               // none: no prefill
  std::optional<double> tpot_ns, tpot_first_ns, tpot_last_ns;  // mean, first and last step; none: no decode steps
  double total_ns = 0;  // the prefill and all decode steps, slow ones of the host among them
  std::vector<StageTimes> stages;
  StepsMemory memory;
  std::optional<StepsEnergy> energy;
  std::vector<std::string> notes;  // what was assumed and left out
  PredictedRun run;
};

// Errors: nothing to predict; a context beyond what a payload or the model's table of positions can hold. A model that
// does not fit is predicted all the same: StepsMemory says so.
Result<StepsPrediction> predict_steps(const TableStepCost& cost, const StepsInput& input);

// "62 % measured operators, 38 % the device's roof": what times stand on, the strongest first.
std::string stands_on_words(const BasisTimes& times);

}  // namespace llmprof::predict
