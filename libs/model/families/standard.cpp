#include "model/families/standard.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text_table.h"

namespace llmprof::model {

Decoder read_decoder(Fields& fields, const Defaults& defaults) {
  Decoder decoder;
  Config& config = decoder.config;
  decoder.layers = fields.size({"num_hidden_layers"}, defaults.layers);
  config.hidden = fields.size({"hidden_size"}, defaults.hidden);
  config.vocab = fields.size({"vocab_size"}, defaults.vocab);
  config.positions = fields.count_or("max_position_embeddings", defaults.positions);
  config.tied_embeddings = fields.flag_or("tie_word_embeddings", defaults.tied);

  Attention& attention = decoder.kind.attention;
  attention.heads = fields.size({"num_attention_heads"}, defaults.heads);
  const bool as_heads = defaults.kv_heads == 0 || fields.is_null("num_key_value_heads");
  attention.kv_heads = fields.count_or("num_key_value_heads", as_heads ? attention.heads : defaults.kv_heads);
  fields.expect_divisible("num_attention_heads", attention.heads, "num_key_value_heads", attention.kv_heads);
  std::int64_t head_dim = defaults.head_dim;
  if (head_dim == 0 && !fields.has("head_dim")) {
    fields.expect_divisible("hidden_size", config.hidden, "num_attention_heads", attention.heads);
    head_dim = attention.heads > 0 ? config.hidden / attention.heads : 0;
  }
  attention.qk_dim = attention.v_dim = fields.count_or("head_dim", head_dim);
  decoder.kind.mlp.width = fields.size({"intermediate_size"}, defaults.width);
  return decoder;
}

std::vector<View> layer_views(Fields& fields, std::int64_t layers, const std::function<View(std::int64_t)>& usual) {
  std::vector<View> views;
  const std::vector<std::string> names = fields.texts("layer_types");
  if (names.empty()) {
    for (std::int64_t layer = 0; layer < layers; ++layer) views.push_back(usual(layer));
    return views;
  }
  fields.expect_length("layer_types", names.size(), layers);
  bool unknown = false;
  for (const std::string& name : names) {
    if (name == "sliding_attention" || name == "chunked_attention") {
      views.push_back(name == "sliding_attention" ? View::kSliding : View::kChunked);
      continue;
    }
    views.push_back(View::kFull);
    if (name == "full_attention" || name == "attention" || unknown) continue;
    unknown = true;
    fields.caveat("layer_types", fmt::format("\"{}\" is not understood and counted as full attention: its FLOPs and KV "
                                             "bytes are upper bounds, parameters are rough",
                                             base::shorten(base::printable(name), 40)));
  }
  return views;
}

std::vector<View> windowed_but_every(Fields& fields, std::int64_t layers, std::int64_t pattern) {
  return layer_views(fields, layers, [&](std::int64_t layer) {
    return pattern > 0 && (layer + 1) % pattern != 0 ? View::kSliding : View::kFull;
  });
}

Config with_views(Decoder decoder, const std::vector<View>& views, std::int64_t window) {
  for (const View view : views) {
    LayerKind kind = decoder.kind;
    if (view == View::kSliding) kind.attention.window = window;
    add_layer(decoder.config, kind);
  }
  return std::move(decoder.config);
}

std::int64_t read_window(Fields& fields, std::int64_t usual) {
  return fields.zero_or_more("sliding_window", fields.is_null("sliding_window") ? 0 : usual);
}

void expect_choice(Fields& fields, const Mlp& mlp) {
  if (fields.error() || mlp.experts_per_token <= mlp.experts) return;
  fields.reject(ErrorCode::kCorruptInput, fmt::format("{}: {} of {} experts", fields.path("num_experts_per_tok"),
                                                      mlp.experts_per_token, mlp.experts));
}

Config uniform(Fields& fields, Decoder decoder) {
  const std::int64_t window = decoder.kind.attention.window;
  const std::vector<View> views =
      layer_views(fields, decoder.layers, [&](std::int64_t) { return window > 0 ? View::kSliding : View::kFull; });
  decoder.kind.attention.window = 0;
  return with_views(std::move(decoder), views, window);
}

Config with_experts(Fields& fields, Decoder decoder, const Mlp& sparse,
                    const std::function<bool(std::int64_t)>& usual) {
  const std::vector<std::string> types = fields.texts("mlp_layer_types");
  if (!types.empty()) fields.expect_length("mlp_layer_types", types.size(), decoder.layers);
  (void)layer_views(fields, decoder.layers, [](std::int64_t) { return View::kFull; });  // for its caveats
  if (fields.error()) return {};
  const Mlp dense = decoder.kind.mlp;
  for (std::int64_t layer = 0; layer < decoder.layers; ++layer) {
    const bool is_sparse = types.empty() ? usual(layer) : types[static_cast<std::size_t>(layer)] == "sparse";
    decoder.kind.mlp = is_sparse ? sparse : dense;
    add_layer(decoder.config, decoder.kind);
  }
  return std::move(decoder.config);
}

Structure plain_structure(const Config& config) { return structure(config, {}); }

Structure structure(const Config& config, const Layout& layout) {
  Structure whole{
      .layer_prefix = layout.prefix,
      .first = {embedding(layout.embedding, config)},
      .kinds = {},
      .last = {norm(layout.last_norm, config, Rows::kSampled), lm_head(config), sampling(config), loss(config)}};
  for (const LayerKind& kind : config.kinds) {
    std::vector<Op> ops;
    const auto add_norm = [&](const std::string& name) {
      if (!name.empty()) ops.push_back(norm(name, config));
    };
    const auto add = [&](std::vector<Op> more) { std::ranges::move(more, std::back_inserter(ops)); };
    add_norm(layout.before_attention);
    add(attention_ops(config, kind.attention, layout.naming));
    add_norm(layout.after_attention);
    add_norm(layout.before_mlp);
    add(mlp_ops(config, kind.mlp, layout.naming));
    add_norm(layout.after_mlp);
    whole.kinds.push_back(std::move(ops));
  }
  return whole;
}

namespace {

void append(std::vector<Op>& ops, std::vector<Op> more) {
  for (Op& op : more) ops.push_back(std::move(op));
}

// q and k in and out; on the way back their gradients.
Op rope(std::string name, std::int64_t q, std::int64_t k) {
  return elementwise(std::move(name), OpClass::kRope, {q, k, q, k}, {q, k, q, k}, q + k);
}

std::vector<Op> separate_qkv(const Config& config, const Attention& a, const Naming& names) {
  const std::int64_t q = a.heads * a.qk_dim, k = a.kv_heads * a.qk_dim, v = a.kv_heads * a.v_dim;
  const std::string& prefix = names.attention;
  // What a norm or the rotation changes is kept after it, not before.
  const bool q_changes = a.rope || a.q_norm > 0, k_changes = a.rope || a.k_norm > 0;
  const auto projection = [&](const char* name, std::int64_t out, bool kept) {
    return linear({.name = prefix + name, .in = config.hidden, .out = out, .bias = a.qkv_bias, .kept = kept});
  };
  return {projection(".q_proj", q, !q_changes), projection(".k_proj", k, !k_changes), projection(".v_proj", v, true)};
}

std::vector<Op> grouped_attention(const Config& config, const Attention& a, const Naming& names) {
  const std::int64_t q = a.heads * a.qk_dim, k = a.kv_heads * a.qk_dim, v = a.kv_heads * a.v_dim;
  const std::string& prefix = names.attention;
  std::vector<Op> ops;
  if (names.fused_qkv) {
    Op fused = linear(
        {.name = prefix + "." + names.qkv, .in = config.hidden, .out = q + k + v, .bias = a.qkv_bias, .kept = !a.rope});
    if (a.rope) fused.kept = v;
    ops.push_back(std::move(fused));
  } else {
    append(ops, separate_qkv(config, a, names));
  }
  if (a.q_norm > 0) ops.push_back(norm_of(prefix + ".q_norm", a.q_norm, q));
  if (a.k_norm > 0) ops.push_back(norm_of(prefix + ".k_norm", a.k_norm, k));
  if (a.rope) ops.push_back(rope(prefix + ".rope", q, k));
  return ops;
}

// The latent of K and V and the shared rotary key come from one matrix; kv_b_proj makes keys and values of the latent,
// or, absorbed, turns q into the latent's space and the result back out of it: the same products per new token.
std::vector<Op> latent_attention(const Config& config, const Attention& a, const Naming& names) {
  const std::int64_t q = a.heads * a.qk_dim, nope = a.qk_dim - a.rope_dim;
  const std::string& prefix = names.attention;
  std::vector<Op> ops;
  if (a.q_rank > 0) {
    ops.push_back(linear({.name = prefix + ".q_a_proj", .in = config.hidden, .out = a.q_rank, .bias = a.qkv_bias}));
    ops.push_back(norm_of(prefix + ".q_a_layernorm", a.q_rank, a.q_rank));
    ops.push_back(linear({.name = prefix + ".q_b_proj", .in = a.q_rank, .out = q, .kept = false}));
  } else {
    ops.push_back(linear({.name = prefix + ".q_proj", .in = config.hidden, .out = q, .kept = false}));
  }
  ops.push_back(linear({.name = prefix + ".kv_a_proj_with_mqa",
                        .in = config.hidden,
                        .out = a.kv_rank + a.rope_dim,
                        .bias = a.qkv_bias}));
  ops.push_back(norm_of(prefix + ".kv_a_layernorm", a.kv_rank, a.kv_rank));
  ops.push_back(linear({.name = prefix + ".kv_b_proj", .in = a.kv_rank, .out = a.heads * (nope + a.v_dim)}));
  ops.back().latent_expansion = true;
  ops.back().attention = a;  // its rows depend on the context
  if (a.rope_dim > 0) ops.push_back(rope(prefix + ".rope", a.heads * a.rope_dim, a.rope_dim));
  if (a.rope_dim > 0) ops.back().kept = q + a.rope_dim;  // the whole of q is needed, rotated or not
  return ops;
}

struct MlpNames {
  std::string prefix;
  const Naming& names;
};

// gate and up in, product out; back: gate, up and the product's gradient in, those of gate and up out. A plain
// activation has one tensor instead of gate and up.
Op activation(const std::string& prefix, bool gated, std::int64_t width) {
  return elementwise(prefix + ".act", OpClass::kElementwise, std::vector(gated ? 3 : 2, width),
                     std::vector(gated ? 5 : 3, width), width);
}

std::vector<Op> plain_mlp(const Config& config, const Mlp& mlp, std::int64_t width, const MlpNames& of) {
  const Naming& names = of.names;
  const auto into = [&](const std::string& name, std::int64_t out) {
    return linear({.name = of.prefix + "." + name, .in = config.hidden, .out = out, .bias = mlp.bias});
  };
  std::vector<Op> ops;
  if (mlp.gated && names.fused_gate_up) {
    ops.push_back(into(names.gate_up, 2 * width));
  } else {
    if (mlp.gated) ops.push_back(into(names.gate, width));
    ops.push_back(into(names.up, width));
  }
  ops.push_back(activation(of.prefix, mlp.gated, width));
  ops.push_back(linear(
      {.name = of.prefix + "." + names.down, .in = width, .out = config.hidden, .bias = mlp.bias, .residual = true}));
  return ops;
}

std::vector<Op> routed_experts(const Config& config, const Mlp& mlp, const Naming& names) {
  const Experts experts{.all = mlp.experts,
                        .here = mlp.local_experts > 0 ? mlp.local_experts : mlp.experts,
                        .per_token = mlp.experts_per_token,
                        .batches = mlp.expert_batches};
  std::vector<Op> ops = plain_mlp(config, mlp, mlp.width, {names.mlp + "." + names.experts, names});
  for (Op& op : ops) op.experts = experts;
  return ops;
}

Op router(const Config& config, const Mlp& mlp, const Naming& names) {
  Op op = linear(
      {.name = names.mlp + "." + names.router, .in = config.hidden, .out = mlp.experts, .bias = mlp.router_bias});
  op.op_class = OpClass::kRouter;
  op.quantisable = false;
  return op;
}

}  // namespace

std::vector<Op> attention_ops(const Config& config, const Attention& attention, const Naming& names) {
  std::vector<Op> ops =
      attention.latent() ? latent_attention(config, attention, names) : grouped_attention(config, attention, names);
  ops.push_back(attention_core(names.attention + ".core", attention));
  ops.push_back(linear({.name = names.attention + "." + names.out,
                        .in = attention.heads * attention.v_dim,
                        .out = config.hidden,
                        .bias = attention.out_bias,
                        .residual = true}));
  return ops;
}

std::vector<Op> mlp_ops(const Config& config, const Mlp& mlp, const Naming& names) {
  if (mlp.experts == 0) return plain_mlp(config, mlp, mlp.width, {names.mlp, names});
  std::vector<Op> ops{router(config, mlp, names)};
  append(ops, routed_experts(config, mlp, names));
  if (mlp.shared_width == 0) return ops;
  if (mlp.shared_gate) {
    Op gate = linear({.name = names.mlp + ".shared_expert_gate", .in = config.hidden, .out = 1});
    gate.op_class = OpClass::kRouter;
    gate.quantisable = false;
    ops.push_back(std::move(gate));
  }
  append(ops, plain_mlp(config, mlp, mlp.shared_width, {names.mlp + "." + names.shared, names}));
  return ops;
}

}  // namespace llmprof::model
