// Llama and its kin: RMSNorm, rotary positions, grouped-query attention, SwiGLU. Mistral adds a window, SmolLM3 layers
// without rotation.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace llama {
namespace {

constexpr std::array<std::string_view, 5> kModelTypes{"llama", "mistral", "ministral", "granite", "smollm3"};

Defaults defaults_of(std::string_view type) {
  if (type == "mistral" || type == "ministral") {  // MistralConfig
    return {
        .hidden = 4096, .layers = 32, .heads = 32, .kv_heads = 8, .width = 14336, .vocab = 32000, .positions = 131072};
  }
  if (type == "smollm3") {  // SmolLM3Config
    return {.hidden = 2048,
            .layers = 36,
            .heads = 16,
            .kv_heads = 4,
            .width = 11008,
            .vocab = 128256,
            .positions = 32768,
            .tied = true};
  }
  // LlamaConfig, GraniteConfig
  return {.hidden = 4096, .layers = 32, .heads = 32, .width = 11008, .vocab = 32000, .positions = 2048};
}

// Mistral's is used wherever it is given, SmolLM3's if use_sliding_window says so.
std::int64_t read_window(Fields& fields, std::string_view type) {
  if (type == "mistral" || type == "ministral") {
    return read_window(fields, 4096);  // MistralConfig
  }
  if (type != "smollm3") return 0;
  const std::int64_t window = read_window(fields, 0);
  return fields.flag_or("use_sliding_window", false) ? window : 0;
}

// no_rope_layers has a 0 for each layer that does not rotate.
std::vector<std::int64_t> read_rotating(Fields& fields, std::int64_t layers, std::string_view type) {
  std::vector<std::int64_t> rotating = fields.counts("no_rope_layers");
  const std::int64_t interval = fields.count_or("no_rope_layer_interval", 4);  // SmolLM3Config
  if (!rotating.empty()) fields.expect_length("no_rope_layers", rotating.size(), layers);
  if (fields.error()) return {};
  for (std::int64_t layer = 0; rotating.size() < static_cast<std::size_t>(layers); ++layer) {
    rotating.push_back(type == "smollm3" && (layer + 1) % interval == 0 ? 0 : 1);
  }
  return rotating;
}

Config read(Fields& fields) {
  const std::string type = fields.text_or("model_type", "llama");
  Decoder decoder = read_decoder(fields, defaults_of(type));
  LayerKind& kind = decoder.kind;
  kind.attention.qkv_bias = kind.attention.out_bias = fields.flag_or("attention_bias", false);
  kind.mlp.bias = fields.flag_or("mlp_bias", false);
  const std::int64_t window = read_window(fields, type);
  const std::vector<std::int64_t> rotating = read_rotating(fields, decoder.layers, type);
  if (fields.error()) return {};
  const std::vector<View> views = layer_views(fields, decoder.layers, [&](std::int64_t layer) {
    const bool here = type != "smollm3" || rotating[static_cast<std::size_t>(layer)] == 0;
    return window > 0 && here ? View::kSliding : View::kFull;
  });
  if (fields.error()) return {};
  for (std::size_t layer = 0; layer < views.size(); ++layer) {
    kind.attention.window = views[layer] == View::kSliding ? window : 0;
    kind.attention.rope = rotating[layer] != 0;
    add_layer(decoder.config, kind);
  }
  return decoder.config;
}

Structure describe(const Config& config) { return structure(config, {}); }

}  // namespace
}  // namespace llama

extern const Family kLlama;
const Family kLlama{
    .name = "llama", .model_types = llama::kModelTypes, .read = llama::read, .describe = llama::describe};

}  // namespace llmprof::model
