// Qwen2 and Qwen2.5: Llama with biases on q, k and v.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace qwen2 {
namespace {

constexpr std::array<std::string_view, 5> kModelTypes{"qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl",
                                                      "qwen2_5_vl_text"};

Config read(Fields& fields) {
  Decoder decoder = read_decoder(fields, {.hidden = 4096,  // Qwen2Config
                                          .layers = 32,
                                          .heads = 32,
                                          .kv_heads = 32,
                                          .width = 22016,
                                          .vocab = 151936,
                                          .positions = 32768});
  decoder.kind.attention.qkv_bias = true;
  const std::int64_t window = read_qwen_window(fields);
  const std::vector<View> views = qwen_views(fields, decoder.layers, window);
  return with_views(std::move(decoder), views, window);
}

Structure describe(const Config& config) { return structure(config, {}); }

}  // namespace
}  // namespace qwen2

extern const Family kQwen2;
const Family kQwen2{
    .name = "qwen2", .model_types = qwen2::kModelTypes, .read = qwen2::read, .describe = qwen2::describe};

}  // namespace llmprof::model
