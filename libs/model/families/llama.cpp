// Llama: RMSNorm, rotary positions, grouped-query attention, SwiGLU, no biases.

#include <array>

#include "model/decoder.h"
#include "model/families.h"

namespace llmprof::model {
namespace {

constexpr std::array<std::string_view, 1> kModelTypes{"llama"};

Config read(Fields& fields) {
  Config config;
  const std::int64_t layers = fields.count("num_hidden_layers", kMaxLayers);
  config.hidden = fields.count("hidden_size");
  const std::int64_t heads = fields.count("num_attention_heads");
  const std::int64_t kv_heads = fields.count_or("num_key_value_heads", heads);
  const std::int64_t intermediate = fields.count("intermediate_size");
  config.vocab = fields.count("vocab_size");
  config.positions = fields.count_or("max_position_embeddings", 0);
  config.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  fields.expect_divisible("num_attention_heads", heads, "num_key_value_heads", kv_heads);
  if (!fields.has("head_dim")) fields.expect_divisible("hidden_size", config.hidden, "num_attention_heads", heads);
  const std::int64_t head_dim = fields.count_or("head_dim", heads > 0 ? config.hidden / heads : 0);
  const bool attention_bias = fields.flag_or("attention_bias", false);
  set_layers(config, layers,
             {.attention = {.heads = heads,
                            .kv_heads = kv_heads,
                            .qk_dim = head_dim,
                            .v_dim = head_dim,
                            .qkv_bias = attention_bias,
                            .out_bias = attention_bias},
              .mlp = {.width = intermediate, .bias = fields.flag_or("mlp_bias", false)}});
  return config;
}

std::vector<Op> layer(const Config& config, const LayerKind& kind) {
  std::vector<Op> ops{norm("input_layernorm", config)};
  for (Op& op : attention_ops(config, kind.attention, {})) ops.push_back(std::move(op));
  ops.push_back(norm("post_attention_layernorm", config));
  for (Op& op : mlp_ops(config, kind.mlp, {})) ops.push_back(std::move(op));
  return ops;
}

Structure describe(const Config& config) {
  Structure structure{.layer_prefix = "layers",
                      .first = {embedding("embed_tokens", config)},
                      .kinds = {},
                      .last = {norm("norm", config, Rows::kSampled), lm_head(config), sampling(config), loss(config)}};
  for (const LayerKind& kind : config.kinds) structure.kinds.push_back(layer(config, kind));
  return structure;
}

}  // namespace

extern const Family kLlama;
const Family kLlama{.name = "llama", .model_types = kModelTypes, .read = read, .describe = describe};

}  // namespace llmprof::model
