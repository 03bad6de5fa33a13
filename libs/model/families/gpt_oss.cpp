// GPT-OSS: every other layer sees a window, a learned sink per head, biases everywhere, experts in every layer.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace gpt_oss {
namespace {

constexpr std::array<std::string_view, 1> kModelTypes{"gpt_oss"};

Config read(Fields& fields) {
  Decoder decoder = read_decoder(fields, {.hidden = 2880,  // GptOssConfig
                                          .layers = 36,
                                          .heads = 64,
                                          .kv_heads = 8,
                                          .head_dim = 64,
                                          .width = 2880,
                                          .vocab = 201088,
                                          .positions = 131072});
  Attention& attention = decoder.kind.attention;
  attention.qkv_bias = attention.out_bias = fields.flag_or("attention_bias", true);
  attention.sinks = true;
  Mlp& mlp = decoder.kind.mlp;
  mlp.experts = fields.count_or("num_local_experts", 128);
  const std::int64_t older = fields.count_or("experts_per_token", 4);
  mlp.experts_per_token = fields.count_or("num_experts_per_tok", older);
  mlp.bias = mlp.router_bias = true;
  expect_choice(fields, mlp);
  const std::int64_t window = read_window(fields, 128);
  const std::vector<View> views = layer_views(
      fields, decoder.layers, [](std::int64_t layer) { return layer % 2 == 0 ? View::kSliding : View::kFull; });
  return with_views(std::move(decoder), views, window);
}

Structure describe(const Config& config) {
  return structure(config, {.naming = {.fused_gate_up = true, .router = "router"}});
}

}  // namespace
}  // namespace gpt_oss

extern const Family kGptOss;
const Family kGptOss{
    .name = "gpt_oss", .model_types = gpt_oss::kModelTypes, .read = gpt_oss::read, .describe = gpt_oss::describe};

}  // namespace llmprof::model
