// OLMo 2: norms after attention and MLP instead of before, and over all heads of q and k together.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace olmo2 {
namespace {

constexpr std::array<std::string_view, 2> kModelTypes{"olmo2", "olmo3"};

Config read(Fields& fields) {
  Decoder decoder = read_decoder(fields, {.hidden = 4096,  // Olmo2Config
                                          .layers = 32,
                                          .heads = 32,
                                          .width = 11008,
                                          .vocab = 50304,
                                          .positions = 2048});
  Attention& attention = decoder.kind.attention;
  attention.qkv_bias = attention.out_bias = fields.flag_or("attention_bias", false);
  attention.q_norm = attention.heads * attention.qk_dim;
  attention.k_norm = attention.kv_heads * attention.qk_dim;
  if (fields.text_or("model_type", "olmo2") == "olmo2") return uniform(fields, std::move(decoder));
  const std::int64_t window = read_window(fields, 4096);  // Olmo3Config, as its pattern of four
  const std::vector<View> views = layer_views(
      fields, decoder.layers, [](std::int64_t layer) { return (layer + 1) % 4 != 0 ? View::kSliding : View::kFull; });
  return with_views(std::move(decoder), views, window);
}

Structure describe(const Config& config) {
  return structure(config, {.before_attention = "",
                            .after_attention = "post_attention_layernorm",
                            .before_mlp = "",
                            .after_mlp = "post_feedforward_layernorm"});
}

}  // namespace
}  // namespace olmo2

extern const Family kOlmo2;
const Family kOlmo2{
    .name = "olmo2", .model_types = olmo2::kModelTypes, .read = olmo2::read, .describe = olmo2::describe};

}  // namespace llmprof::model
