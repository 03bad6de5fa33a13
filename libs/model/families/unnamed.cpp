// Models without a family: those of unknown type, and those inferred from a run.

#include <algorithm>

#include "base/json.h"
#include "model/families/standard.h"

namespace llmprof::model {

// A decoder whose model_type nobody described: what the keys that most share say, with Llama's layers around them.
// The first of several spellings that is there.
static std::int64_t first_of(Fields& fields, std::initializer_list<std::string_view> keys, std::int64_t fallback) {
  for (const std::string_view key : keys) {
    if (fields.has(key)) return fields.zero_or_more(key, fallback);
  }
  return fallback;
}

static Attention read_attention(Fields& fields, std::int64_t hidden) {
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

static Mlp read_dense(Fields& fields, std::int64_t hidden) {
  Mlp mlp{.width = first_of(fields, {"intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner", "d_ff"}, 0),
          .bias = fields.flag_or("mlp_bias", false)};
  if (mlp.width == 0 && !fields.error()) {
    mlp.width = 4 * hidden;
    fields.caveat("intermediate_size", "not given: 4 x hidden_size is taken");
  }
  return mlp;
}

static Mlp read_sparse(Fields& fields, const Mlp& dense) {
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

static Config read_generic(Fields& fields) {
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

const Family kGeneric{.name = "generic", .model_types = {}, .read = read_generic};

// A transformer that no config describes: what the shapes of a run's products say (analyze/infer_model.cpp writes it).
// Widths are exact. Norms and activations are taken as Llama's or, with biases, as GPT-2's.
// "adapters": {"self_attn.q_proj": 16}: low-rank products beside the matrix of the operator.
static void read_adapters(Fields& fields, Config& config) {
  const base::Json* adapters = fields.find("adapters");
  if (adapters == nullptr) return;
  if (!adapters->is_object()) return fields.reject(ErrorCode::kCorruptInput, "adapters: not an object");
  for (const auto& [name, rank] : adapters->items()) {
    if (!rank.is_number_integer() || rank.get<std::int64_t>() < 1 || rank.get<std::int64_t>() > kMaxCount)
      return fields.reject(ErrorCode::kCorruptInput, "adapters: ranks are whole numbers from 1");
    config.adapters[name] = rank.get<std::int64_t>();
  }
}

static Config read_inferred(Fields& fields) {
  Config config;
  const std::int64_t layers = fields.count("num_hidden_layers");
  config.hidden = fields.count("hidden_size");
  config.vocab = fields.zero_or_more("vocab_size", 0);
  config.has_last = config.vocab > 0;  // without: whatever is done with the result of the last layer is not counted
  config.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  const bool bias = fields.flag_or("bias", false);
  config.norm_bias = bias;
  config.frozen = fields.flag_or("frozen", false);
  read_adapters(fields, config);
  Attention attention{.heads = fields.count("num_attention_heads"),
                      .kv_heads = fields.count("num_key_value_heads"),
                      .qk_dim = fields.count("head_dim"),
                      .qkv_bias = bias,
                      .out_bias = bias,
                      .rope = fields.flag_or("rope", true),
                      .causal = fields.flag_or("causal", true)};
  attention.v_dim = attention.qk_dim;
  const Mlp mlp{.width = fields.count("intermediate_size"), .gated = fields.flag_or("gated", true), .bias = bias};
  if (!fields.flag_or("heads_known", true))
    fields.note(kHeadsUnknown,
                "its heads are not known: the widths of all of them together are, and costs rest on these");
  if (!fields.error()) set_layers(config, layers, {.attention = attention, .mlp = mlp});
  return config;
}

static Structure describe_inferred(const Config& config) {
  Structure whole = structure(config, {});
  for (std::vector<Op>& ops : whole.kinds) {
    std::vector<Op> with;
    for (Op& op : ops) {
      const auto adapter = config.adapters.find(op.name);
      with.push_back(std::move(op));
      if (adapter == config.adapters.end()) continue;
      const std::int64_t in = with.back().in, out = with.back().out;
      with.push_back(linear({.name = adapter->first + ".lora_A", .in = in, .out = adapter->second}));
      with.push_back(linear({.name = adapter->first + ".lora_B", .in = adapter->second, .out = out}));
    }
    ops = std::move(with);
  }
  if (!config.frozen) return whole;
  const auto freeze = [](std::vector<Op>& ops) {
    for (Op& op : ops) op.frozen = !op.name.ends_with(".lora_A") && !op.name.ends_with(".lora_B");
  };
  freeze(whole.first), freeze(whole.last);
  std::ranges::for_each(whole.kinds, freeze);
  return whole;
}

const Family kInferred{
    .name = "inferred", .model_types = {"inferred"}, .read = read_inferred, .describe = describe_inferred};

}  // namespace llmprof::model
