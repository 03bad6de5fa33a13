// DeepSeek with its latent attention, and GLM, whose experts are routed as DeepSeek's.

#include "model/families/standard.h"

namespace llmprof::model {
namespace {

// Defaults of the config classes in transformers, in the order of the fields of Defaults: hidden, layers, heads,
// kv_heads (0: as many as heads), head_dim (0: hidden / heads), width, vocab, positions, tied.
constexpr Defaults kGlm4Config{4096, 40, 32, 2, 128, 13696, 151552, 131072};  // also GlmConfig
constexpr Defaults kGlm4MoeConfig{4096, 46, 96, 8, 128, 10944, 151552, 131072};
constexpr Defaults kDeepseekV2Config{4096, 32, 32, 0, 0, 11008, 32000, 2048};
constexpr Defaults kDeepseekV3Config{7168, 61, 128, 0, 0, 18432, 129280, 4096};

// What the DeepSeek families share: latent attention, and experts after the first dense layers.
struct LatentDefaults {
  Defaults decoder;
  std::int64_t expert_width = 0, experts = 0, experts_per_token = 0, shared = 0;
  std::int64_t dense_first = 0;
  bool score_offsets = false;  // e_score_correction_bias: a value for each expert
};

Attention read_attention(Fields& fields, std::int64_t heads) {
  Attention attention{.heads = heads, .kv_heads = heads};
  attention.kv_rank = fields.count_or("kv_lora_rank", 512);
  attention.q_rank = fields.is_null("q_lora_rank") ? 0 : fields.count_or("q_lora_rank", 1536);
  attention.rope_dim = fields.count_or("qk_rope_head_dim", 64);
  attention.qk_dim = fields.count_or("qk_nope_head_dim", 128) + attention.rope_dim;
  attention.v_dim = fields.count_or("v_head_dim", 128);
  attention.qkv_bias = attention.out_bias = fields.flag_or("attention_bias", false);
  return attention;
}

Mlp read_experts(Fields& fields, const LatentDefaults& defaults) {
  Mlp mlp{.width = fields.count_or("moe_intermediate_size", defaults.expert_width),
          .experts = fields.count_or("n_routed_experts", defaults.experts)};
  mlp.experts_per_token = defaults.experts_per_token > 0
                              ? fields.count_or("num_experts_per_tok", defaults.experts_per_token)
                              : fields.count("num_experts_per_tok");
  mlp.shared_width = fields.zero_or_more("n_shared_experts", defaults.shared) * mlp.width;
  mlp.router_bias = defaults.score_offsets && fields.text_or("topk_method", "noaux_tc") == "noaux_tc";
  expect_choice(fields, mlp);
  return mlp;
}

Config read_latent(Fields& fields, const LatentDefaults& defaults) {
  Decoder decoder = read_decoder(fields, defaults.decoder);
  fields.ignore({"qk_head_dim"});  // the sum of the two
  decoder.kind.attention = read_attention(fields, decoder.kind.attention.heads);
  const std::int64_t dense_first = fields.zero_or_more("first_k_dense_replace", defaults.dense_first);
  const std::int64_t every = fields.count_or("moe_layer_freq", 1);
  const Mlp sparse = fields.is_null("n_routed_experts") ? decoder.kind.mlp : read_experts(fields, defaults);
  return with_experts(fields, std::move(decoder), sparse,
                      [=](std::int64_t layer) { return layer >= dense_first && layer % every == 0; });
}

// DeepSeek-V2: latent attention; after the first layers routed and shared experts.
Config read_deepseek_v2(Fields& fields) {
  return read_latent(fields, {.decoder = kDeepseekV2Config,
                              .expert_width = 1407,
                              .experts = 64,
                              .experts_per_token = 0,
                              .shared = 2,
                              .dense_first = 0});
}

}  // namespace

const Family kDeepseekV2{.name = "deepseek_v2", .model_types = {"deepseek_v2"}, .read = read_deepseek_v2};

// DeepSeek-V3 and R1, Kimi K2: DeepSeek-V2 with a learned offset of each expert's score.
static Config read_deepseek_v3(Fields& fields) {
  return read_latent(fields, {.decoder = kDeepseekV3Config,
                              .expert_width = 2048,
                              .experts = 256,
                              .experts_per_token = 8,
                              .shared = 1,
                              .dense_first = 3,
                              .score_offsets = true});
}

const Family kDeepseekV3{
    .name = "deepseek_v3", .model_types = {"deepseek_v3", "deepseek_v32", "kimi_k2"}, .read = read_deepseek_v3};

// GLM-4: biases on q, k and v, gate and up in one matrix. The newer glm4 has norms after attention and MLP
// too; "glm" has not.
static Config read_glm4(Fields& fields) {
  Decoder decoder = read_decoder(fields, kGlm4Config);
  decoder.kind.attention.qkv_bias = fields.flag_or("attention_bias", true);
  return uniform(fields, std::move(decoder));
}

static Structure describe_newer(const Config& config) {
  return structure(config, {.naming = {.fused_gate_up = true},
                            .after_attention = "post_self_attn_layernorm",
                            .after_mlp = "post_mlp_layernorm"});
}

static Structure describe_older(const Config& config) { return structure(config, {.naming = {.fused_gate_up = true}}); }

const Family kGlm4{.name = "glm4", .model_types = {"glm4"}, .read = read_glm4, .describe = describe_newer};
const Family kGlm{.name = "glm", .model_types = {"glm"}, .read = read_glm4, .describe = describe_older};

// GLM-4.5 and GLM-4.6: grouped-query attention, experts routed as in DeepSeek-V3.
static Config read_glm4_moe(Fields& fields) {
  Decoder decoder = read_decoder(fields, kGlm4MoeConfig);
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

const Family kGlm4Moe{.name = "glm4_moe", .model_types = {"glm4_moe", "glm4v_moe_text"}, .read = read_glm4_moe};

}  // namespace llmprof::model
