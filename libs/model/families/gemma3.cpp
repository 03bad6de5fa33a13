// Gemma 3: of six layers, five see a window; norms over the heads of q and k instead of soft caps.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace gemma3 {
namespace {

constexpr std::array<std::string_view, 2> kModelTypes{"gemma3_text", "gemma3"};

Config read(Fields& fields) {
  Decoder decoder = read_decoder(fields, {.hidden = 2304,  // Gemma3TextConfig
                                          .layers = 26,
                                          .heads = 8,
                                          .kv_heads = 4,
                                          .head_dim = 256,
                                          .width = 9216,
                                          .vocab = 262208,
                                          .positions = 131072,
                                          .tied = true});
  Attention& attention = decoder.kind.attention;
  attention.qkv_bias = attention.out_bias = fields.flag_or("attention_bias", false);
  attention.q_norm = attention.k_norm = attention.qk_dim;
  const std::int64_t window = read_window(fields, 4096);
  const std::int64_t older = fields.count_or("_sliding_window_pattern", 6);
  const std::int64_t pattern = fields.count_or("sliding_window_pattern", older);
  const std::vector<View> views = layer_views(fields, decoder.layers, [&](std::int64_t layer) {
    return pattern > 0 && (layer + 1) % pattern != 0 ? View::kSliding : View::kFull;
  });
  return with_views(std::move(decoder), views, window);
}

Structure describe(const Config& config) { return structure(config, norms_on_both_sides()); }

}  // namespace
}  // namespace gemma3

extern const Family kGemma3;
const Family kGemma3{
    .name = "gemma3", .model_types = gemma3::kModelTypes, .read = gemma3::read, .describe = gemma3::describe};

}  // namespace llmprof::model
