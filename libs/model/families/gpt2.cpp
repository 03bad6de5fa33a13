// GPT-2: LayerNorm, learned positions, one fused projection for q, k and v, GELU, biases everywhere, tied embeddings.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace gpt2 {
namespace {

constexpr std::array<std::string_view, 1> kModelTypes{"gpt2"};

Config read(Fields& fields) {  // defaults: GPT2Config
  Config config;
  const std::int64_t layers = fields.size({"n_layer", "num_hidden_layers"}, 12);
  config.hidden = fields.size({"n_embd", "hidden_size"}, 768);
  const std::int64_t heads = fields.size({"n_head", "num_attention_heads"}, 12);
  config.positions = fields.size({"n_positions", "max_position_embeddings"}, 1024);
  config.position_table = true;
  config.vocab = fields.size({"vocab_size"}, 50257);
  config.norm_bias = true;
  config.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  fields.expect_divisible("n_embd", config.hidden, "n_head", heads);
  const std::int64_t head_dim = heads > 0 ? config.hidden / heads : 0;
  set_layers(config, layers,
             {.attention = {.heads = heads,
                            .kv_heads = heads,
                            .qk_dim = head_dim,
                            .v_dim = head_dim,
                            .qkv_bias = true,
                            .out_bias = true,
                            .rope = false},
              .mlp = {.width = fields.count_or("n_inner", 4 * config.hidden), .gated = false, .bias = true}});
  return config;
}

Structure describe(const Config& config) {
  return structure(
      config,
      {.naming =
           {.attention = "attn", .fused_qkv = true, .qkv = "c_attn", .out = "c_proj", .up = "c_fc", .down = "c_proj"},
       .prefix = "h",
       .embedding = "wte",
       .last_norm = "ln_f",
       .before_attention = "ln_1",
       .before_mlp = "ln_2"});
}

}  // namespace
}  // namespace gpt2

extern const Family kGpt2;
const Family kGpt2{.name = "gpt2", .model_types = gpt2::kModelTypes, .read = gpt2::read, .describe = gpt2::describe};

}  // namespace llmprof::model
