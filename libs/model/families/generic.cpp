// A decoder whose model_type nobody described: what the keys that most share say, with Llama's layers around them.

#include "model/families/standard.h"

namespace llmprof::model {
namespace {

// The first of several spellings that is there.
std::int64_t first_of(Fields& fields, std::initializer_list<std::string_view> keys, std::int64_t fallback) {
  for (const std::string_view key : keys) {
    if (fields.has(key)) return fields.zero_or_more(key, fallback);
  }
  return fallback;
}

Attention read_attention(Fields& fields, std::int64_t hidden) {
  Attention attention;
  attention.heads = fields.size({"num_attention_heads", "n_head", "num_heads", "n_heads"}, 0);
  const std::int64_t kv_heads =
      first_of(fields, {"num_key_value_heads", "num_kv_heads", "n_kv_heads", "n_head_kv"}, attention.heads);
  attention.kv_heads = kv_heads > 0 ? kv_heads : attention.heads;
  fields.expect_divisible("num_attention_heads", attention.heads, "num_key_value_heads", attention.kv_heads);
  const std::int64_t even = attention.heads > 0 ? std::max<std::int64_t>(hidden / attention.heads, 1) : 0;
  attention.qk_dim = attention.v_dim = fields.count_or("head_dim", even);
  const bool bias = fields.flag_or("attention_bias", fields.flag_or("bias", false));
  attention.qkv_bias = fields.flag_or("qkv_bias", bias);
  attention.out_bias = bias;
  if (fields.flag_or("use_qk_norm", false)) attention.q_norm = attention.k_norm = attention.qk_dim;
  return attention;
}

Mlp read_dense(Fields& fields, std::int64_t hidden) {
  Mlp mlp{.width = first_of(fields, {"intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner", "d_ff"}, 0),
          .bias = fields.flag_or("mlp_bias", false)};
  if (mlp.width == 0 && !fields.error()) {
    mlp.width = 4 * hidden;
    fields.caveat("intermediate_size", "not given: 4 x hidden_size is taken");
  }
  return mlp;
}

Mlp read_sparse(Fields& fields, const Mlp& dense) {
  Mlp mlp{.width = first_of(fields, {"moe_intermediate_size", "expert_intermediate_size"}, dense.width),
          .bias = dense.bias,
          .experts = first_of(fields, {"num_experts", "num_local_experts", "n_routed_experts"}, 0)};
  mlp.experts_per_token = first_of(fields, {"num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k"}, 1);
  mlp.shared_width = first_of(fields, {"shared_expert_intermediate_size", "shared_intermediate_size"}, 0);
  if (mlp.shared_width == 0) {
    mlp.shared_width = first_of(fields, {"n_shared_experts", "num_shared_experts"}, 0) * mlp.width;
  }
  if (mlp.experts == 0 || mlp.width == 0) return dense;
  mlp.experts_per_token = std::max<std::int64_t>(mlp.experts_per_token, 1);
  expect_choice(fields, mlp);
  return mlp;
}

Config read(Fields& fields) {
  Config config;
  const std::int64_t layers = fields.size({"num_hidden_layers", "n_layer", "num_layers", "n_layers"}, 0);
  config.hidden = fields.size({"hidden_size", "n_embd", "d_model", "dim"}, 0);
  config.vocab = fields.size({"vocab_size", "padded_vocab_size"}, 0);
  config.positions = first_of(fields, {"max_position_embeddings", "n_positions", "max_seq_len"}, 0);
  config.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  LayerKind kind{.attention = read_attention(fields, config.hidden), .mlp = read_dense(fields, config.hidden)};
  const Mlp dense = kind.mlp, sparse = read_sparse(fields, dense);
  const std::int64_t dense_first = fields.zero_or_more("first_k_dense_replace", 0);
  const std::int64_t window = fields.has("layer_types") ? read_window(fields, 0) : 0;
  const std::vector<View> views = layer_views(fields, layers, [](std::int64_t) { return View::kFull; });
  if (fields.error()) return {};
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    kind.attention.window = views[static_cast<std::size_t>(layer)] == View::kSliding ? window : 0;
    kind.mlp = layer < dense_first ? dense : sparse;
    add_layer(config, kind);
  }
  return config;
}

Structure describe(const Config& config) { return structure(config, {}); }

}  // namespace

extern const Family kGeneric;
const Family kGeneric{.name = "generic", .model_types = {}, .read = read, .describe = describe};

}  // namespace llmprof::model
