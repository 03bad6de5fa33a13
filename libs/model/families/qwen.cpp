// The Qwen families.

#include <algorithm>

#include "model/families/standard.h"

namespace llmprof::model {
// Defaults of the config classes in transformers, in the order of the fields of Defaults: hidden, layers, heads,
// kv_heads (0: as many as heads), head_dim (0: hidden / heads), width, vocab, positions, tied.
constexpr Defaults kQwen2Config{4096, 32, 32, 32, 0, 22016, 151936, 32768};
constexpr Defaults kQwen2MoeConfig{2048, 24, 16, 16, 0, 5632, 151936, 32768};
constexpr Defaults kQwen3Config{4096, 32, 32, 32, 128, 22016, 151936, 32768};
constexpr Defaults kQwen3MoeConfig{2048, 24, 32, 4, 0, 6144, 151936, 32768};

// A window, if it is used at all, from layer max_window_layers on. 0: not used.
static std::int64_t read_qwen_window(Fields& fields) {
  const std::int64_t window = read_window(fields, 4096);
  return fields.flag_or("use_sliding_window", false) ? window : 0;
}

static std::vector<View> qwen_views(Fields& fields, std::int64_t layers, std::int64_t window) {
  const std::int64_t first = fields.zero_or_more("max_window_layers", 28);
  return layer_views(fields, layers,
                     [&](std::int64_t layer) { return window > 0 && layer >= first ? View::kSliding : View::kFull; });
}

static Config qwen_dense(Fields& fields, Decoder decoder) {
  const std::int64_t window = read_qwen_window(fields);
  const std::vector<View> views = qwen_views(fields, decoder.layers, window);
  return with_views(std::move(decoder), views, window);
}

// The experts of `sparse` in every decoder_sparse_step-th layer that is not in mlp_only_layers.
static Config qwen_sparse(Fields& fields, Decoder decoder, const Mlp& sparse) {
  const std::int64_t window = read_qwen_window(fields);
  const std::vector<View> views = qwen_views(fields, decoder.layers, window);
  const std::int64_t step = fields.count_or("decoder_sparse_step", 1);
  std::vector<std::int64_t> dense_layers = fields.counts("mlp_only_layers");
  std::ranges::sort(dense_layers);
  expect_choice(fields, sparse);
  if (fields.error()) return {};
  const Mlp dense = decoder.kind.mlp;
  for (std::int64_t layer = 0; layer < decoder.layers; ++layer) {
    const bool is_dense = (layer + 1) % step != 0 || std::ranges::binary_search(dense_layers, layer);
    decoder.kind.mlp = is_dense ? dense : sparse;
    decoder.kind.attention.window = views[static_cast<std::size_t>(layer)] == View::kSliding ? window : 0;
    add_layer(decoder.config, decoder.kind);
  }
  return std::move(decoder.config);
}

// Qwen2 and Qwen2.5: Llama with biases on q, k and v.
static Config read_qwen2(Fields& fields) {
  Decoder decoder = read_decoder(fields, kQwen2Config);
  decoder.kind.attention.qkv_bias = true;
  return qwen_dense(fields, std::move(decoder));
}

const Family kQwen2{.name = "qwen2",
                    .model_types = {"qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"},
                    .read = read_qwen2};

// Qwen1.5-MoE and Qwen2-57B: routed experts and one shared expert with a gate of its own.
static Config read_qwen2_moe(Fields& fields) {
  Decoder decoder = read_decoder(fields, kQwen2MoeConfig);
  decoder.kind.attention.qkv_bias = fields.flag_or("qkv_bias", true);
  const Mlp sparse{.width = fields.count_or("moe_intermediate_size", 1408),
                   .experts = fields.count_or("num_experts", 60),
                   .experts_per_token = fields.count_or("num_experts_per_tok", 4),
                   .shared_width = fields.count_or("shared_expert_intermediate_size", 5632),
                   .shared_gate = true};
  return qwen_sparse(fields, std::move(decoder), sparse);
}

static Structure describe_qwen2_moe(const Config& config) {
  return structure(config, {.naming = {.shared = "shared_expert"}});
}

const Family kQwen2Moe{
    .name = "qwen2_moe", .model_types = {"qwen2_moe"}, .read = read_qwen2_moe, .describe = describe_qwen2_moe};

// Qwen3: norms over the heads of q and k instead of biases; head_dim is a size of its own.
static Config read_qwen3(Fields& fields) {
  Decoder decoder = read_decoder(fields, kQwen3Config);
  Attention& attention = decoder.kind.attention;
  attention.q_norm = attention.k_norm = attention.qk_dim;
  attention.qkv_bias = attention.out_bias = fields.flag_or("attention_bias", false);
  return qwen_dense(fields, std::move(decoder));
}

const Family kQwen3{.name = "qwen3", .model_types = {"qwen3", "qwen3_vl_text"}, .read = read_qwen3};

// Qwen3-30B-A3B, Qwen3-235B-A22B: Qwen3's attention, routed experts, none shared.
static Config read_qwen3_moe(Fields& fields) {
  Decoder decoder = read_decoder(fields, kQwen3MoeConfig);
  Attention& attention = decoder.kind.attention;
  attention.q_norm = attention.k_norm = attention.qk_dim;
  attention.qkv_bias = attention.out_bias = fields.flag_or("attention_bias", false);
  const std::int64_t experts = fields.count_or("num_local_experts", 128);  // transformers 5 writes num_experts too
  const Mlp sparse{.width = fields.count_or("moe_intermediate_size", 768),
                   .experts = fields.count_or("num_experts", experts),
                   .experts_per_token = fields.count_or("num_experts_per_tok", 8)};
  return qwen_sparse(fields, std::move(decoder), sparse);
}

const Family kQwen3Moe{.name = "qwen3_moe", .model_types = {"qwen3_moe", "qwen3_vl_moe_text"}, .read = read_qwen3_moe};

}  // namespace llmprof::model
