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

std::int64_t read_qwen_window(Fields& fields) {
  const std::int64_t window = read_window(fields, 4096);
  return fields.flag_or("use_sliding_window", false) ? window : 0;
}

std::vector<View> qwen_views(Fields& fields, std::int64_t layers, std::int64_t window) {
  const std::int64_t first = fields.zero_or_more("max_window_layers", 28);
  return layer_views(fields, layers,
                     [&](std::int64_t layer) { return window > 0 && layer >= first ? View::kSliding : View::kFull; });
}

Config qwen_sparse(Fields& fields, Decoder decoder, const Mlp& sparse) {
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

Layout norms_on_both_sides() {
  Layout layout;
  layout.after_attention = "post_attention_layernorm";
  layout.before_mlp = "pre_feedforward_layernorm";
  layout.after_mlp = "post_feedforward_layernorm";
  return layout;
}

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

}  // namespace llmprof::model
