#pragma once
// model.safetensors.index.json: which tensor is in which file.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace llmprof::model {

struct SafetensorsIndex {
  std::uint64_t total_bytes = 0;                            // as its writer added them up; 0: not said
  std::map<std::string, std::string, std::less<>> file_of;  // by tensor: a plain file name
};

inline constexpr std::uint64_t kMostIndexBytes = 100'000'000;

// File names must be plain names: an index never leads out of its own folder.
Result<SafetensorsIndex> parse_safetensors_index(std::string_view json_text, std::string_view where);

}  // namespace llmprof::model
