#pragma once
// A prediction in the form of a run: its steps, what executes in them and, of a serving, its requests, all on one clock
// that begins at 0. write_run() makes the folder that report, diff, query, plot and the page read.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hw/device.h"
#include "hw/peaks.h"
#include "model/config.h"
#include "model/shard.h"
#include "predict/batch.h"

namespace llmprof::predict {

// What the payload of a step can say (include/llmprof/annotate.h).
inline constexpr std::int64_t kMostStepBatch = 0xFFFF, kMostStepTokens = 0xFFFFFF;

// What executes: an operator of a layer, or something of no operator (a collective).
struct Place {
  std::string module;  // "layers.3.mlp.up_proj", as libs/model names it; "" none
  std::string kernel;  // the part of the step that does it: "gate_up_proj"
};

struct Execution {
  std::uint32_t place = 0;
  double begin_ns = 0;  // since the begin of its step
  double ns = 0;
};

struct PredictedStep {
  double begin_ns = 0;
  double device_ns = 0;
  Batch batch;
  std::vector<Execution> work;  // one after the other, inside the step; may be empty
};

struct PredictedRequest {
  double arrival_ns = 0;
  std::optional<double> first_token_ns, end_ns;  // none: it never came so far
  std::int64_t prompt_tokens = 0, output_tokens = 0;
  std::string status;  // "finished", "rejected: …"
};

struct PredictedRun {
  std::vector<std::string> command;
  std::string config_text;   // config.json of the whole model
  std::string model_origin;  // in words: "llama-3.1-8b"
  model::Types types;        // where other types were asked for
  model::Parallel parallel;  // the run is that of the first rank
  hw::Device device;
  std::vector<hw::Peak> peaks;
  std::string stands_on;           // one sentence, the first thing that a report says
  std::vector<std::string> notes;  // what was assumed and left out

  double begin_ns = 0;  // what was before is not in it: its process begins here
  std::vector<Place> places;
  std::vector<PredictedStep> steps;  // by time
  std::vector<PredictedRequest> requests;
};

// Writes `folder` (a new one, or one that holds no run.json). Every kernel is marked as estimated; nothing in the run
// claims that a program ran: no exit status, no cost of recording, no wall time.
Result<void> write_run(const std::string& folder, const PredictedRun& run);

// The stage that a batch is: "prefill", "decode" or "mixed".
std::string_view stage_of(const Batch& batch);

}  // namespace llmprof::predict
