#pragma once
// The tensors of a checkpoint, whatever its format, as its headers list them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/regular_file.h"
#include "base/result.h"
#include "model/checkpoint/gguf.h"

namespace llmprof::model {

struct StoredTensor {
  std::string name;
  std::string type;  // "BF16", "Q4_K", as the format says it
  std::int64_t values = 0;
  std::uint64_t bytes = 0;
};

struct TensorList {
  std::string format;              // "safetensors", "GGUF"
  std::vector<std::string> files;  // names, without their folder
  // In the order of the files. Of an index whose files are not there: names only.
  std::vector<StoredTensor> tensors;
  bool sizes_known = true;
  std::uint64_t announced_bytes = 0;  // what the index says; 0: nothing
  std::vector<std::string> notes;     // what a user should know
};

// One file, or the parts that an index lists: they must be in its folder. Parts that are missing are no error as long
// as all are: a config and its index can be had without the weights.
Result<TensorList> list_safetensors(const std::string& path);
Result<TensorList> list_safetensors_index(const std::string& path);

// One file, or all parts of a split model when given any of them. The metadata is that of the first part.
struct GgufModel {
  GgufHeader first;
  TensorList list;
};
Result<GgufModel> list_gguf(const std::string& path);

}  // namespace llmprof::model
