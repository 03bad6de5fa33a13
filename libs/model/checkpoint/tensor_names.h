#pragma once
// From the names of tensors, as Hugging Face and GGUF write them, to the modules of the analysis.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmprof::model {

enum class TensorRole : std::uint8_t {
  kParameters,  // every value is a parameter
  kPacked,      // several parameters in one value, or a part of one
  kSide,        // scales, zero points, indices of a quantised matrix: bytes of its module, no parameters
  kBuffer,      // rotary frequencies, attention masks: no parameters at all
};

// "model.layers.3.mlp.experts.17.up_proj.weight" is {3, "mlp.experts.up_proj", kParameters}.
struct TensorName {
  std::optional<std::int64_t> layer;
  std::string op;
  TensorRole role = TensorRole::kParameters;
};
TensorName parse_tensor_name(std::string_view name);

// The modules that a tensor belongs to: mostly one; of a fused matrix whose parts the analysis keeps apart, each part
// to an equal share. `is_known` says whether the analysis has an operator of that name in this layer. Empty: none.
std::vector<std::string> ops_of(const TensorName& tensor, const std::function<bool(const std::string&)>& is_known);

}  // namespace llmprof::model
