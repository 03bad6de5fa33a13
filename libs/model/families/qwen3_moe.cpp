// Qwen3-30B-A3B, Qwen3-235B-A22B: Qwen3's attention, routed experts, none shared.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace qwen3_moe {
namespace {

constexpr std::array<std::string_view, 2> kModelTypes{"qwen3_moe", "qwen3_vl_moe_text"};

Config read(Fields& fields) {
  Decoder decoder = read_decoder(fields, {.hidden = 2048,  // Qwen3MoeConfig
                                          .layers = 24,
                                          .heads = 32,
                                          .kv_heads = 4,
                                          .width = 6144,
                                          .vocab = 151936,
                                          .positions = 32768});
  Attention& attention = decoder.kind.attention;
  attention.q_norm = attention.k_norm = attention.qk_dim;
  attention.qkv_bias = attention.out_bias = fields.flag_or("attention_bias", false);
  const std::int64_t experts = fields.count_or("num_local_experts", 128);  // transformers 5 writes num_experts too
  const Mlp sparse{.width = fields.count_or("moe_intermediate_size", 768),
                   .experts = fields.count_or("num_experts", experts),
                   .experts_per_token = fields.count_or("num_experts_per_tok", 8)};
  return qwen_sparse(fields, std::move(decoder), sparse);
}

Structure describe(const Config& config) { return structure(config, {}); }

}  // namespace
}  // namespace qwen3_moe

extern const Family kQwen3Moe;
const Family kQwen3Moe{.name = "qwen3_moe",
                       .model_types = qwen3_moe::kModelTypes,
                       .read = qwen3_moe::read,
                       .describe = qwen3_moe::describe};

}  // namespace llmprof::model
