// Llama 4: layers with rotation see their own chunk only, every fourth has none and sees everything; one routed and one
// shared expert per token in some or all layers.

#include <algorithm>
#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace llama4 {
namespace {

constexpr std::array<std::string_view, 2> kModelTypes{"llama4_text", "llama4"};

// A 0 for each layer without rotation.
std::vector<std::int64_t> read_rotating(Fields& fields, std::int64_t layers) {
  std::vector<std::int64_t> rotating = fields.counts("no_rope_layers");
  const std::int64_t interval = fields.count_or("no_rope_layer_interval", 4);
  if (!rotating.empty()) fields.expect_length("no_rope_layers", rotating.size(), layers);
  if (fields.error()) return {};
  for (std::int64_t layer = 0; rotating.size() < static_cast<std::size_t>(layers); ++layer) {
    rotating.push_back((layer + 1) % interval == 0 ? 0 : 1);
  }
  return rotating;
}

std::vector<bool> read_sparse(Fields& fields, std::int64_t layers) {
  std::vector<bool> sparse(static_cast<std::size_t>(layers), false);
  const bool listed = fields.has("moe_layers");
  for (const std::int64_t layer : fields.counts("moe_layers")) {
    if (layer < layers) sparse[static_cast<std::size_t>(layer)] = true;
  }
  const std::int64_t step = fields.count_or("interleave_moe_layer_step", 1);
  if (listed || fields.error()) return sparse;
  for (std::int64_t layer = step - 1; layer < layers; layer += step) sparse[static_cast<std::size_t>(layer)] = true;
  return sparse;
}

Config read(Fields& fields) {
  Decoder decoder = read_decoder(fields, {.hidden = 5120,  // Llama4TextConfig
                                          .layers = 48,
                                          .heads = 40,
                                          .kv_heads = 8,
                                          .head_dim = 128,
                                          .width = 8192,
                                          .vocab = 202048,
                                          .positions = 131072});
  Attention& attention = decoder.kind.attention;
  attention.qkv_bias = attention.out_bias = fields.flag_or("attention_bias", false);
  fields.ignore({"use_qk_norm", "for_llm_compressor"});  // the norm has no weights
  const std::int64_t width = decoder.kind.mlp.width;
  const Mlp dense{.width = fields.count_or("intermediate_size_mlp", 16384)};
  const Mlp sparse{.width = width,
                   .experts = fields.count_or("num_local_experts", 16),
                   .experts_per_token = fields.count_or("num_experts_per_tok", 1),
                   .shared_width = width};
  expect_choice(fields, sparse);
  const std::int64_t chunk = fields.count_or("attention_chunk_size", fields.is_null("attention_chunk_size") ? 0 : 8192);
  const std::vector<std::int64_t> rotating = read_rotating(fields, decoder.layers);
  const std::vector<bool> with_experts = read_sparse(fields, decoder.layers);
  if (fields.error()) return {};
  const std::vector<View> views = layer_views(fields, decoder.layers, [&](std::int64_t layer) {
    return rotating[static_cast<std::size_t>(layer)] != 0 ? View::kChunked : View::kFull;
  });
  if (fields.error()) return {};
  for (std::size_t layer = 0; layer < views.size(); ++layer) {
    attention.chunk = views[layer] == View::kChunked ? chunk : 0;
    attention.rope = rotating[layer] != 0;
    decoder.kind.mlp = with_experts[layer] ? sparse : dense;
    add_layer(decoder.config, decoder.kind);
  }
  return decoder.config;
}

Structure describe(const Config& config) {
  return structure(config, {.naming = {.mlp = "feed_forward", .router = "router", .shared = "shared_expert"}});
}

}  // namespace
}  // namespace llama4

extern const Family kLlama4;
const Family kLlama4{
    .name = "llama4", .model_types = llama4::kModelTypes, .read = llama4::read, .describe = llama4::describe};

}  // namespace llmprof::model
