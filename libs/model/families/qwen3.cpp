// Qwen3: norms over the heads of q and k instead of biases; head_dim is a size of its own.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace qwen3 {
namespace {

constexpr std::array<std::string_view, 2> kModelTypes{"qwen3", "qwen3_vl_text"};

Config read(Fields& fields) {
  Decoder decoder = read_decoder(fields, {.hidden = 4096,  // Qwen3Config
                                          .layers = 32,
                                          .heads = 32,
                                          .kv_heads = 32,
                                          .head_dim = 128,
                                          .width = 22016,
                                          .vocab = 151936,
                                          .positions = 32768});
  Attention& attention = decoder.kind.attention;
  attention.q_norm = attention.k_norm = attention.qk_dim;
  attention.qkv_bias = attention.out_bias = fields.flag_or("attention_bias", false);
  const std::int64_t window = read_qwen_window(fields);
  const std::vector<View> views = qwen_views(fields, decoder.layers, window);
  return with_views(std::move(decoder), views, window);
}

Structure describe(const Config& config) { return structure(config, {}); }

}  // namespace
}  // namespace qwen3

extern const Family kQwen3;
const Family kQwen3{
    .name = "qwen3", .model_types = qwen3::kModelTypes, .read = qwen3::read, .describe = qwen3::describe};

}  // namespace llmprof::model
