// GPT-2: LayerNorm, learned positions, one fused projection for q, k and v, GELU, biases everywhere, tied embeddings.

#include "model/families.h"

namespace llmprof::model {
namespace {

Config read(Fields& fields) {
  Config config;
  config.family = "gpt2";
  config.layers = fields.count("n_layer", kMaxLayers);
  config.hidden = fields.count("n_embd");
  config.heads = config.kv_heads = fields.count("n_head");
  config.positions = fields.count("n_positions");
  config.vocab = fields.count("vocab_size");
  config.intermediate = fields.count_or("n_inner", 4 * config.hidden);
  config.biases = true;
  config.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  fields.expect_divisible("n_embd", config.hidden, "n_head", config.heads);
  config.head_dim = config.heads > 0 ? config.hidden / config.heads : 0;
  return config;
}

Structure describe(const Config& c) {
  return {
      .layer_prefix = "h",
      .first = {embedding("wte", c, {{c.vocab, c.hidden}, {c.positions, c.hidden, true}})},
      .layer =
          {
              norm("ln_1", c),
              linear({.name = "attn.c_attn", .in = c.hidden, .out = 3 * c.hidden, .bias = true}),
              attention_core("attn.core", c),
              linear({.name = "attn.c_proj", .in = c.hidden, .out = c.hidden, .bias = true, .residual = true}),
              norm("ln_2", c),
              linear({.name = "mlp.c_fc", .in = c.hidden, .out = c.intermediate, .bias = true}),
              // back: its input, the gradients of its output and of its input
              elementwise("mlp.act", {c.intermediate, c.intermediate},
                          {c.intermediate, c.intermediate, c.intermediate}),
              linear({.name = "mlp.c_proj", .in = c.intermediate, .out = c.hidden, .bias = true, .residual = true}),
          },
      .last = {norm("ln_f", c, Rows::kSampled), lm_head(c), sampling(c), loss(c)},
  };
}

}  // namespace

const Family kGpt2{.name = "gpt2", .read = read, .describe = describe};

}  // namespace llmprof::model
