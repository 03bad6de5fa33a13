#pragma once
// A model's architecture in sentences.

#include <optional>
#include <string>
#include <vector>

#include "model/checkpoint/checkpoint.h"
#include "model/config.h"

namespace llmprof::analyze::design {

// "32 heads of 64, 8 KV heads (GQA)", one sentence for each kind of attention and of MLP, with its layers where they
// differ.
std::vector<std::string> describe_architecture(const model::Config& config);
// "weights bfloat16, KV cache bfloat16, activations bfloat16, products bfloat16".
std::string describe_types(const model::Config& config);
// Where the sizes of the weights come from.
std::string describe_source(const model::Config& config, const std::optional<model::Checkpoint>& checkpoint);

}  // namespace llmprof::analyze::design
