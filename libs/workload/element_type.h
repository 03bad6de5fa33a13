#pragma once
// What weights and activations are stored in. Sums are float32 either way.

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace llmprof::workload {

enum class ElementType : std::uint8_t { kFloat32, kBfloat16 };

constexpr std::int64_t bytes_of(ElementType type) { return type == ElementType::kFloat32 ? 4 : 2; }
constexpr std::string_view name_of(ElementType type) { return type == ElementType::kFloat32 ? "float32" : "bfloat16"; }

inline Result<ElementType> parse_element_type(std::string_view name) {
  if (name == "float32") return ElementType::kFloat32;
  if (name == "bf16" || name == "bfloat16") return ElementType::kBfloat16;
  return Error{ErrorCode::kUsage, "unknown type '" + std::string(name) + "'", "known: float32, bf16"};
}

}  // namespace llmprof::workload
