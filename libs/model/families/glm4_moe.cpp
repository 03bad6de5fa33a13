// GLM-4.5 and GLM-4.6: grouped-query attention, experts routed as in DeepSeek-V3.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace glm4_moe {
namespace {

constexpr std::array<std::string_view, 2> kModelTypes{"glm4_moe", "glm4v_moe_text"};

Config read(Fields& fields) {
  Decoder decoder = read_decoder(fields, {.hidden = 4096,  // Glm4MoeConfig
                                          .layers = 46,
                                          .heads = 96,
                                          .kv_heads = 8,
                                          .head_dim = 128,
                                          .width = 10944,
                                          .vocab = 151552,
                                          .positions = 131072});
  Attention& attention = decoder.kind.attention;
  attention.qkv_bias = fields.flag_or("attention_bias", false);
  if (fields.flag_or("use_qk_norm", false)) attention.q_norm = attention.k_norm = attention.qk_dim;
  Mlp sparse{.width = fields.count_or("moe_intermediate_size", 1408),
             .experts = fields.count_or("n_routed_experts", 128),
             .experts_per_token = fields.count_or("num_experts_per_tok", 8),
             .router_bias = true};  // e_score_correction_bias: a value for each expert
  sparse.shared_width = fields.zero_or_more("n_shared_experts", 1) * sparse.width;
  expect_choice(fields, sparse);
  const std::int64_t dense_first = fields.zero_or_more("first_k_dense_replace", 1);
  return with_experts(fields, std::move(decoder), sparse, [=](std::int64_t layer) { return layer >= dense_first; });
}

Structure describe(const Config& config) { return structure(config, {}); }

}  // namespace
}  // namespace glm4_moe

extern const Family kGlm4Moe;
const Family kGlm4Moe{
    .name = "glm4_moe", .model_types = glm4_moe::kModelTypes, .read = glm4_moe::read, .describe = glm4_moe::describe};

}  // namespace llmprof::model
