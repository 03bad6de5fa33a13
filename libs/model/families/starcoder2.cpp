// StarCoder2: LayerNorm, biases everywhere, a plain MLP, a window.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace starcoder2 {
namespace {

constexpr std::array<std::string_view, 1> kModelTypes{"starcoder2"};

Config read(Fields& fields) {
  Decoder decoder = read_decoder(fields, {.hidden = 3072,  // Starcoder2Config
                                          .layers = 30,
                                          .heads = 24,
                                          .kv_heads = 2,
                                          .width = 12288,
                                          .vocab = 49152,
                                          .positions = 4096,
                                          .tied = true});
  const bool bias = fields.flag_or("use_bias", true);
  fields.ignore({"mlp_type"});  // one kind exists
  decoder.config.norm_bias = true;
  decoder.kind.attention.qkv_bias = decoder.kind.attention.out_bias = bias;
  decoder.kind.attention.window = read_window(fields, 0);
  decoder.kind.mlp.gated = false;
  decoder.kind.mlp.bias = bias;
  return uniform(fields, std::move(decoder));
}

Structure describe(const Config& config) { return structure(config, {.naming = {.up = "c_fc", .down = "c_proj"}}); }

}  // namespace
}  // namespace starcoder2

extern const Family kStarcoder2;
const Family kStarcoder2{.name = "starcoder2",
                         .model_types = starcoder2::kModelTypes,
                         .read = starcoder2::read,
                         .describe = starcoder2::describe};

}  // namespace llmprof::model
