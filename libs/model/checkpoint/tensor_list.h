#pragma once
// The tensors of a checkpoint, whatever its format, as its headers list them.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
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
// The metadata of a GGUF model as the text of a Hugging Face config.json, so that families read both alike. An
// architecture without a translation keeps its name as the model_type: what can be said of it is then up to
// parse_config.
Result<std::string> config_text_of(const GgufModel& model, std::string_view where);

// model.safetensors.index.json: which tensor is in which file.

struct SafetensorsIndex {
  std::uint64_t total_bytes = 0;                            // as its writer added them up; 0: not said
  std::map<std::string, std::string, std::less<>> file_of;  // by tensor: a plain file name
};

inline constexpr std::uint64_t kMostIndexBytes = 100'000'000;

// File names must be plain names: an index never leads out of its own folder.
Result<SafetensorsIndex> parse_safetensors_index(std::string_view json_text, std::string_view where);

}  // namespace llmprof::model
