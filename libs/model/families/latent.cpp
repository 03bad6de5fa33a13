#include "model/families/latent.h"

namespace llmprof::model {
namespace {

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

}  // namespace

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

}  // namespace llmprof::model
