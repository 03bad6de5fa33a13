#pragma once
// One way in for everything that names a model: a built-in name, a folder or file of Hugging Face, a GGUF file. Reads
// headers only; fetches and executes nothing.

#include <optional>
#include <string>
#include <vector>

#include "model/checkpoint/checkpoint.h"
#include "model/config.h"

namespace llmprof::model {

struct OpenedModel {
  Config config;
  std::string config_text;               // of the config.json, or of the one made from a GGUF header
  std::string origin;                    // "built-in name llama-3.2-1b", "PATH/config.json"
  std::optional<Checkpoint> checkpoint;  // where weights lie beside the config
  std::vector<std::string> notes;        // what a user should know
};

// A built-in name; the id of a model in the local Hugging Face cache; a folder with config.json (weights beside it are
// used), a repository folder of that cache; config.json; model.safetensors.index.json or a .safetensors file with
// config.json beside it; a .gguf file or any part of a split one. A built-in name wins over a file of that name: write
// "./name" for the file.
Result<OpenedModel> open_model(const std::string& name_or_path);

}  // namespace llmprof::model
