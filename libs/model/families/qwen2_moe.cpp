// Qwen1.5-MoE and Qwen2-57B: routed experts and one shared expert with a gate of its own.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace qwen2_moe {
namespace {

constexpr std::array<std::string_view, 1> kModelTypes{"qwen2_moe"};

Config read(Fields& fields) {
  Decoder decoder = read_decoder(fields, {.hidden = 2048,  // Qwen2MoeConfig
                                          .layers = 24,
                                          .heads = 16,
                                          .kv_heads = 16,
                                          .width = 5632,
                                          .vocab = 151936,
                                          .positions = 32768});
  decoder.kind.attention.qkv_bias = fields.flag_or("qkv_bias", true);
  const Mlp sparse{.width = fields.count_or("moe_intermediate_size", 1408),
                   .experts = fields.count_or("num_experts", 60),
                   .experts_per_token = fields.count_or("num_experts_per_tok", 4),
                   .shared_width = fields.count_or("shared_expert_intermediate_size", 5632),
                   .shared_gate = true};
  return qwen_sparse(fields, std::move(decoder), sparse);
}

Structure describe(const Config& config) { return structure(config, {.naming = {.shared = "shared_expert"}}); }

}  // namespace
}  // namespace qwen2_moe

extern const Family kQwen2Moe;
const Family kQwen2Moe{.name = "qwen2_moe",
                       .model_types = qwen2_moe::kModelTypes,
                       .read = qwen2_moe::read,
                       .describe = qwen2_moe::describe};

}  // namespace llmprof::model
