// Phi-1, Phi-1.5, Phi-2: attention and MLP side by side behind one LayerNorm, biases everywhere, the logits' too.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace phi {
namespace {

constexpr std::array<std::string_view, 1> kModelTypes{"phi"};

Config read(Fields& fields) {
  Decoder decoder = read_decoder(fields, {.hidden = 2048,  // PhiConfig
                                          .layers = 24,
                                          .heads = 32,
                                          .width = 8192,
                                          .vocab = 51200,
                                          .positions = 2048});
  decoder.config.norm_bias = true;
  decoder.kind.attention.qkv_bias = decoder.kind.attention.out_bias = true;
  decoder.kind.mlp.gated = false;
  decoder.kind.mlp.bias = true;
  if (fields.flag_or("qk_layernorm", false)) fields.caveat("qk_layernorm", "not counted: parameters are a lower bound");
  return uniform(fields, std::move(decoder));
}

Structure describe(const Config& config) {
  Structure whole = structure(
      config,
      {.naming = {.out = "dense", .up = "fc1", .down = "fc2"}, .last_norm = "final_layernorm", .before_mlp = ""});
  for (Op& op : whole.last) {
    if (op.op_class == OpClass::kLogits) op.parameters += config.vocab;  // its bias
  }
  return whole;
}

}  // namespace
}  // namespace phi

extern const Family kPhi;
const Family kPhi{.name = "phi", .model_types = phi::kModelTypes, .read = phi::read, .describe = phi::describe};

}  // namespace llmprof::model
