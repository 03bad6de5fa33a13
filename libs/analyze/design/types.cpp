#include "analyze/design/types.h"

#include <fmt/format.h>

namespace llmprof::analyze::design {
namespace {

Result<model::Number> known(const std::string& type, std::string_view option) {
  const std::optional<model::Number> number = model::number_of(type);
  if (number) return *number;
  return Error{ErrorCode::kUsage, fmt::format("{}: '{}' is not a type of numbers", option, type),
               "for example float32, bfloat16, float8, int8, int4, mxfp4, q4_k"};
}

// Weights narrower than 16 bits are those of the layers' matrices; embeddings, norms and logits keep their type, and
// activations stay wide. Products of float8 weights run in float8; other narrow weights are widened first.
void quantise(model::Config& config, const model::Number& number) {
  model::Quantization quantization{.method = "--dtype", .weight = number, .arithmetic = "", .ignore = {}};
  if (number.type.starts_with("float8")) quantization.arithmetic = number.type;
  config.quantization = std::move(quantization);
  config.stored.clear();
}

}  // namespace

Result<void> apply_types(model::Config& config, const WantedTypes& wanted) {
  if (!wanted.weights.empty()) {
    LLMPROF_LET(const model::Number number, known(wanted.weights, "--dtype"));
    if (number.bytes < 2) {
      quantise(config, number);
    } else {
      config.quantization.reset();
      config.stored.clear();
      config.set_type(number);
    }
  }
  if (!wanted.kv.empty()) {
    LLMPROF_LET(config.kv, known(wanted.kv, "--kv-dtype"));
  }
  if (!wanted.activations.empty()) {
    LLMPROF_LET(config.activation, known(wanted.activations, "--activation-dtype"));
  }
  if (!wanted.arithmetic.empty()) {
    model::Number number{"tf32", 4};
    if (wanted.arithmetic != number.type) {
      LLMPROF_LET(number, known(wanted.arithmetic, "--arithmetic"));
    }
    config.arithmetic = number.type;
    if (config.quantization) config.quantization->arithmetic = number.type;
  }
  return {};
}

}  // namespace llmprof::analyze::design
