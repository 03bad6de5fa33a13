#pragma once
// The types of GGUF tensors: blocks of values with their scales.

#include <cstdint>
#include <span>
#include <string_view>

namespace llmprof::model {

struct GgmlType {
  std::uint32_t id;       // in the file
  std::string_view name;  // "Q4_K"
  std::uint32_t values;   // of a block; rows hold whole blocks
  std::uint32_t bytes;    // of a block
};

std::span<const GgmlType> ggml_types();
const GgmlType* find_ggml_type(std::uint32_t id);  // nullptr if unknown

}  // namespace llmprof::model
