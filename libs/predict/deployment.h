#pragma once
// How an engine is set up: model, device, version, limits. As the file meta.json beside published measurements says it,
// or as somebody asks for it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/checkpoint/open_model.h"
#include "predict/forecast.h"

namespace llmprof::predict {

struct Deployment {
  std::string path;                // of the file; "" there was none
  std::string model;               // a name or a path
  std::string device;              // a name; "" the best of this machine
  std::string dtype, kv_dtype;     // "" as the model says
  std::string engine = "vllm";     // "vllm@0.19.0", "static"
  double device_memory_bytes = 0;  // 0: as the device says
  std::int64_t tensor = 1, replicas = 1;
  std::int64_t expert = 1;            // ranks that share the experts
  std::vector<std::string> settings;  // of the engine, "max_num_seqs=256", as serving::set_rule() takes them
  std::vector<std::string> changes;   // of the model, "kv_heads=4", as model::change() takes them
};

// "max_num_seqs=64", "kv_heads=4", "tp=2": puts a setting where it belongs. Errors: an unknown key, with what was
// perhaps meant over all of them. Values are checked by serving_input().
Result<void> add_setting(Deployment& deployment, std::string_view setting);

// Keys of another type than expected are passed over, text that is no JSON object is an error.
Result<Deployment> parse_deployment(std::string_view text, const std::string& where);
// meta.json in the first of these folders, or above it, that has one; nothing is no error.
Result<Deployment> find_deployment(const std::vector<std::string>& folders);

// The input of a prediction but for its workload: opens the model, looks the device up, applies the settings. A device
// that nobody knows is fine where there are tables of it.
Result<ServingInput> serving_input(const Deployment& deployment, OperatorTables tables);
// The same where model and device are at hand: for many devices and types of one model.
Result<ServingInput> serving_input(const Deployment& deployment, const model::OpenedModel& model,
                                   const hw::DeviceAndPeaks& device, OperatorTables tables);
// The model of a deployment. "meta-llama/Llama-3.1-8B" is also the built-in model of that name.
Result<model::OpenedModel> open_named(const std::string& name);

// Tables of another shape of the model, of the same device, for this one (tables/borrow.h).
Result<void> use_tables_of(ServingInput& input, const OperatorTables& tables, const model::Config& theirs,
                           const model::Parallel& their_parallel);

}  // namespace llmprof::predict
