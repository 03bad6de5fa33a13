#pragma once
// The metadata of a GGUF model in the words of a Hugging Face config.json, so that families read both alike.

#include <string>
#include <string_view>

#include "model/checkpoint/tensor_list.h"

namespace llmprof::model {

// The text of a config.json. An architecture without a translation keeps its name as the model_type: what can be said
// of it is then up to parse_config.
Result<std::string> config_text_of(const GgufModel& model, std::string_view where);

}  // namespace llmprof::model
