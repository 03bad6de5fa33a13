// Gemma 2: every other layer sees a window; norms before and after attention and MLP.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace gemma2 {
namespace {

constexpr std::array<std::string_view, 1> kModelTypes{"gemma2"};

Config read(Fields& fields) {
  Decoder decoder = read_decoder(fields, {.hidden = 2304,  // Gemma2Config
                                          .layers = 26,
                                          .heads = 8,
                                          .kv_heads = 4,
                                          .head_dim = 256,
                                          .width = 9216,
                                          .vocab = 256000,
                                          .positions = 8192,
                                          .tied = true});
  decoder.kind.attention.qkv_bias = decoder.kind.attention.out_bias = fields.flag_or("attention_bias", false);
  fields.ignore({"sliding_window_size"});  // the same in older files
  const std::int64_t window = read_window(fields, 4096);
  const std::vector<View> views = layer_views(
      fields, decoder.layers, [](std::int64_t layer) { return layer % 2 == 0 ? View::kSliding : View::kFull; });
  return with_views(std::move(decoder), views, window);
}

Structure describe(const Config& config) { return structure(config, norms_on_both_sides()); }

}  // namespace
}  // namespace gemma2

extern const Family kGemma2;
const Family kGemma2{
    .name = "gemma2", .model_types = gemma2::kModelTypes, .read = gemma2::read, .describe = gemma2::describe};

}  // namespace llmprof::model
