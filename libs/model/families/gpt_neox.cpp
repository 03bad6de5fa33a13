// GPT-NeoX and Pythia: LayerNorm, one matrix for q, k and v, rotation of a part of each head, biases everywhere.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace gpt_neox {
namespace {

constexpr std::array<std::string_view, 1> kModelTypes{"gpt_neox"};

Config read(Fields& fields) {
  Decoder decoder = read_decoder(fields, {.hidden = 6144,  // GPTNeoXConfig
                                          .layers = 44,
                                          .heads = 64,
                                          .width = 24576,
                                          .vocab = 50432,
                                          .positions = 2048});
  decoder.config.norm_bias = true;
  decoder.kind.attention.qkv_bias = decoder.kind.attention.out_bias = fields.flag_or("attention_bias", true);
  decoder.kind.mlp.gated = false;
  decoder.kind.mlp.bias = true;
  fields.ignore({"use_parallel_residual"});  // side by side or in turn: the same products
  return uniform(fields, std::move(decoder));
}

Structure describe(const Config& config) {
  Structure whole = structure(config, {.naming = {.attention = "attention",
                                                  .fused_qkv = true,
                                                  .qkv = "query_key_value",
                                                  .out = "dense",
                                                  .up = "dense_h_to_4h",
                                                  .down = "dense_4h_to_h"},
                                       .embedding = "embed_in",
                                       .last_norm = "final_layer_norm"});
  for (Op& op : whole.last) {
    if (op.op_class == OpClass::kLogits) op.name = "embed_out";
  }
  return whole;
}

}  // namespace
}  // namespace gpt_neox

extern const Family kGptNeox;
const Family kGptNeox{
    .name = "gpt_neox", .model_types = gpt_neox::kModelTypes, .read = gpt_neox::read, .describe = gpt_neox::describe};

}  // namespace llmprof::model
