// GPT-2: LayerNorm, learned positions, one fused projection for q, k and v, GELU, biases everywhere, tied embeddings.

#include <array>

#include "model/decoder.h"
#include "model/families.h"

namespace llmprof::model {
namespace {

constexpr std::array<std::string_view, 1> kModelTypes{"gpt2"};

Config read(Fields& fields) {
  Config config;
  const std::int64_t layers = fields.count("n_layer", kMaxLayers);
  config.hidden = fields.count("n_embd");
  const std::int64_t heads = fields.count("n_head");
  config.positions = fields.count("n_positions");
  config.position_table = true;
  config.vocab = fields.count("vocab_size");
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

std::vector<Op> layer(const Config& config, const LayerKind& kind) {
  const Naming names{
      .attention = "attn", .fused_qkv = true, .qkv = "c_attn", .out = "c_proj", .up = "c_fc", .down = "c_proj"};
  std::vector<Op> ops{norm("ln_1", config)};
  for (Op& op : attention_ops(config, kind.attention, names)) ops.push_back(std::move(op));
  ops.push_back(norm("ln_2", config));
  for (Op& op : mlp_ops(config, kind.mlp, names)) ops.push_back(std::move(op));
  return ops;
}

Structure describe(const Config& config) {
  Structure structure{.layer_prefix = "h",
                      .first = {embedding("wte", config)},
                      .kinds = {},
                      .last = {norm("ln_f", config, Rows::kSampled), lm_head(config), sampling(config), loss(config)}};
  for (const LayerKind& kind : config.kinds) structure.kinds.push_back(layer(config, kind));
  return structure;
}

}  // namespace

extern const Family kGpt2;
const Family kGpt2{.name = "gpt2", .model_types = kModelTypes, .read = read, .describe = describe};

}  // namespace llmprof::model
