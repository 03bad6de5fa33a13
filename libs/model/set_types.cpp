// The types that a user asks for instead of the config's own.

#include <fmt/format.h>

#include "base/text_table.h"
#include "model/config.h"

namespace llmprof::model {
namespace {

Result<Number> known(std::string_view type) {
  if (const std::optional<Number> number = number_of(type)) return *number;
  return Error{ErrorCode::kUsage, fmt::format("type \"{}\" is not known", base::shorten(base::printable(type), 40)),
               "known types: float32, bfloat16, float16, float8_e4m3, float8_e5m2, int8, int4, nf4, mxfp4, nvfp4, and "
               "those of GGUF such as q4_k"};
}

void set_activation(Config& config, const Number& number) {
  if (config.kv == config.activation) config.kv = number;  // the cache has a type of its own only where one is named
  config.activation = number;
  config.arithmetic = number.type;
}

// Below 16 bits a type is one of matrices: norms, tables and what flows between operators stay as they are. Products
// are then of float8 where the weights are; of integers and smaller floats, kernels make the activation's type first.
void set_weight(Config& config, const Number& number) {
  config.stored.clear();
  config.quantization.reset();
  if (number.bytes >= 2) {
    config.weight = number;
    set_activation(config, number);
    return;
  }
  if (config.weight.bytes < 2) config.weight = config.activation;
  const bool float8 = number.type.starts_with("float8");
  config.quantization = Quantization{
      .method = number.type, .weight = number, .arithmetic = float8 ? number.type : "", .ignore = {}, .only = {}};
}

}  // namespace

Result<void> set_types(Config& config, const Types& types) {
  if (!types.weight.empty()) {
    LLMPROF_LET(const Number number, known(types.weight));
    set_weight(config, number);
  }
  if (!types.activation.empty()) {
    LLMPROF_LET(const Number number, known(types.activation));
    set_activation(config, number);
  }
  if (!types.kv.empty()) {
    LLMPROF_LET(config.kv, known(types.kv));
  }
  return {};
}

}  // namespace llmprof::model
