// Llama: RMSNorm, rotary positions, grouped-query attention, SwiGLU, no biases.

#include "model/families.h"

namespace llmprof::model {
namespace {

Config read(Fields& fields) {
  Config config;
  config.family = "llama";
  config.layers = fields.count("num_hidden_layers", kMaxLayers);
  config.hidden = fields.count("hidden_size");
  config.heads = fields.count("num_attention_heads");
  config.kv_heads = fields.count_or("num_key_value_heads", config.heads);
  config.intermediate = fields.count("intermediate_size");
  config.vocab = fields.count("vocab_size");
  config.positions = fields.count_or("max_position_embeddings", 0);
  config.gated_mlp = true;
  config.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  fields.expect_divisible("num_attention_heads", config.heads, "num_key_value_heads", config.kv_heads);
  if (!fields.has("head_dim")) {
    fields.expect_divisible("hidden_size", config.hidden, "num_attention_heads", config.heads);
  }
  config.head_dim = fields.count_or("head_dim", config.heads > 0 ? config.hidden / config.heads : 0);
  fields.expect_off("attention_bias");
  fields.expect_off("mlp_bias");
  return config;
}

Structure describe(const Config& c) {
  const std::int64_t q = c.heads * c.head_dim;
  const std::int64_t kv = c.kv_heads * c.head_dim;
  return {
      .layer_prefix = "layers",
      .first = {embedding("embed_tokens", c, {{c.vocab, c.hidden}})},
      .layer =
          {
              norm("input_layernorm", c),
              linear({.name = "self_attn.q_proj", .in = c.hidden, .out = q}),
              linear({.name = "self_attn.k_proj", .in = c.hidden, .out = kv}),
              linear({.name = "self_attn.v_proj", .in = c.hidden, .out = kv}),
              elementwise("self_attn.rope", {q, kv, q, kv}, {q, kv, q, kv}),  // q and k in and out; gradients too
              attention_core("self_attn.core", c),
              linear({.name = "self_attn.o_proj", .in = q, .out = c.hidden, .residual = true}),
              norm("post_attention_layernorm", c),
              linear({.name = "mlp.gate_proj", .in = c.hidden, .out = c.intermediate}),
              linear({.name = "mlp.up_proj", .in = c.hidden, .out = c.intermediate}),
              // gate and up in, product out; back: gate, up and the product's gradient in, those of gate and up out
              elementwise("mlp.act", std::vector(3, c.intermediate), std::vector(5, c.intermediate)),
              linear({.name = "mlp.down_proj", .in = c.intermediate, .out = c.hidden, .residual = true}),
          },
      .last = {norm("norm", c, Rows::kSampled), lm_head(c), sampling(c), loss(c)},
  };
}

}  // namespace

const Family kLlama{.name = "llama", .read = read, .describe = describe};

}  // namespace llmprof::model
