#pragma once
// A checkpoint joined with the analysis: exact bytes per module, and where the two disagree.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/checkpoint/tensor_list.h"
#include "model/config.h"

namespace llmprof::model {

struct StoredModule {
  std::int64_t parameters = 0;
  std::uint64_t bytes = 0;  // scales and zero points included
  std::string type;         // of most of the bytes: "bfloat16", "q4_k"
  bool packed = false;      // the parameters are those of the analysis: the headers alone do not say them
};

struct Checkpoint {
  std::string format;              // "safetensors", "GGUF"
  std::vector<std::string> files;  // names, without their folder
  std::int64_t tensors = 0;
  // By the module paths of the analysis. Tensors that it does not know stand under their own names.
  std::map<std::string, StoredModule> modules;
  bool sizes_known = true;      // false: only names, and perhaps the sum of bytes, from an index without its files
  std::int64_t parameters = 0;  // stored, tied ones once
  std::uint64_t bytes = 0;      // of all tensors: buffers and copies of tied matrices too
  std::uint64_t buffer_bytes = 0;
  std::vector<Caveat> caveats;
  std::vector<std::string> notes;
};

// Joins the tensors with the config's operators: fills config.stored (and config.weight where the files hold something
// else than the config says) and adds what was found to differ to config.caveats.
Checkpoint join_checkpoint(TensorList list, Config& config);

}  // namespace llmprof::model
