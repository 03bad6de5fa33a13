#pragma once
// Weights from a .safetensors file with Hugging Face tensor names.

#include <string>

#include "base/result.h"
#include "workload/weights.h"

namespace llmprof::workload {

// Names may begin with "model." or "transformer."; tensors that the model does not have (attention masks) are ignored.
Result<Weights> load_weights(const ModelConfig& config, const std::string& path);

}  // namespace llmprof::workload
