#pragma once
// How a program computes its model: the kernels of one recorded step of each stage, in their order, with what each is
// for. Names, sizes and shapes, not times: those come from tables of this device, for whatever size is asked for. And
// how fast its host launches them, which no table of kernels knows (host terms, calibrated by the run).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "trace/run.h"

namespace llmprof::predict {

// A value calibrated by the steps of a run: the median, and where four fifths of them lie; of less than 8 steps the
// least, and where all lie.
struct Calibrated {
  double value = 0, low = 0, high = 0;
  double mean = 0;           // with the slow steps, for sums over many
  std::int64_t samples = 0;  // 0: not known
  bool known() const { return samples > 0; }
};

// What the host does in a step of a stage. Few terms, each with a name and an interval.
struct HostTerms {
  Calibrated launch_ns;   // from one launch to the next
  Calibrated latency_ns;  // from a launch to the begin of its kernel on an idle device
  Calibrated around_ns;  // of a step: before its first launch, and after the end of its last kernel until the next step
};

struct WeightProduct {
  std::int64_t rows = 0, n = 0, k = 0;  // rows of activations; n, k of the weight
  std::string type;
};

struct StepKernel {
  std::string name;
  std::int64_t blocks = 0, threads = 0;
  std::string op;                        // operator of the model, relative to its layer; "" unknown
  std::string module;                    // "layers.3.mlp.up_proj"; "" unknown
  std::optional<WeightProduct> product;  // of the first kernel of a call; its other kernels are `follows`
  bool follows = false;                  // part of the call of the kernel before it
  bool attention = false;                // the fused attention itself
  bool grows = false;                    // has more blocks in a step with a longer context
};

struct StageSteps {
  std::string stage;                 // "prefill", "decode", "mixed"
  std::int64_t step_id = 0;          // of the run's
  std::int64_t batch = 0, rows = 0;  // sequences; new tokens of all
  std::int64_t contexts = 0;         // tokens that these attend to, of all sequences; 0: not known
  bool graph = false;                // launched as CUDA graphs
  std::int64_t launches = 0;         // by the host, in a step: kernels one by one, or graphs
  std::vector<StepKernel> kernels;
  std::int64_t variants = 1;  // how many different numbers of kernels steps of this stage have
  HostTerms host;
};

struct Implementation {
  std::string run;  // its folder
  std::vector<std::string> command;
  std::vector<StageSteps> stages;
  const StageSteps* stage(std::string_view name) const;  // nullptr: it has none
};

// The run's derived tables must be in use. An error where it has no prefill or decode with recorded kernels on a GPU.
Result<Implementation> read_implementation(const trace::Run& run);

}  // namespace llmprof::predict
