#pragma once
// The models whose costs the tests derive by hand.

#include "model/model.h"

namespace llmprof::model {

// Hidden 8, 2 heads of 4, MLP 32, 10 words, 16 positions.
inline Config tiny_gpt2(std::int64_t layers = 3) {
  Config config;
  config.family = "gpt2";
  config.hidden = 8;
  config.vocab = 10;
  config.positions = 16;
  config.position_table = true;
  config.norm_bias = true;
  config.tied_embeddings = true;
  set_layers(
      config, layers,
      {.attention =
           {.heads = 2, .kv_heads = 2, .qk_dim = 4, .v_dim = 4, .qkv_bias = true, .out_bias = true, .rope = false},
       .mlp = {.width = 32, .gated = false, .bias = true}});
  return config;
}

// Hidden 8, 4 query heads of 2, 2 kv heads, MLP 12, 10 words.
inline LayerKind tiny_llama_layer() {
  return {.attention = {.heads = 4, .kv_heads = 2, .qk_dim = 2, .v_dim = 2}, .mlp = {.width = 12}};
}
inline Config tiny_llama(std::int64_t layers = 2) {
  Config config;
  config.family = "llama";
  config.hidden = 8;
  config.vocab = 10;
  set_layers(config, layers, tiny_llama_layer());
  return config;
}

inline constexpr std::int64_t kUnlimited = std::int64_t{1} << 60;

inline std::vector<OpCost> analyze(const Config& config, const Pass& pass, std::int64_t on_chip_bytes) {
  return analyze(Graph(config), pass, {.on_chip_bytes = on_chip_bytes});
}

inline Costs sum_of(const std::vector<OpCost>& costs) {
  Costs sum;
  for (const OpCost& cost : costs) sum += cost;
  return sum;
}

// One group of sequences alike.
inline Pass one(std::int64_t batch, std::int64_t tokens, std::int64_t context, std::int64_t sampled = 1) {
  return mixed({{.count = batch, .tokens = tokens, .context = context, .sampled = sampled}});
}

}  // namespace llmprof::model
