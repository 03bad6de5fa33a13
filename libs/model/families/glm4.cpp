// GLM-4: biases on q, k and v, gate and up in one matrix. The newer glm4 has norms after attention and MLP
// too; "glm" has not.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace {

constexpr std::array<std::string_view, 1> kNewer{"glm4"};
constexpr std::array<std::string_view, 1> kOlder{"glm"};

Config read(Fields& fields) {
  Decoder decoder = read_decoder(fields, {.hidden = 4096,  // Glm4Config, GlmConfig
                                          .layers = 40,
                                          .heads = 32,
                                          .kv_heads = 2,
                                          .head_dim = 128,
                                          .width = 13696,
                                          .vocab = 151552,
                                          .positions = 131072});
  decoder.kind.attention.qkv_bias = fields.flag_or("attention_bias", true);
  return uniform(fields, std::move(decoder));
}

Structure describe_newer(const Config& config) {
  return structure(config, {.naming = {.fused_gate_up = true},
                            .after_attention = "post_self_attn_layernorm",
                            .after_mlp = "post_mlp_layernorm"});
}

Structure describe_older(const Config& config) { return structure(config, {.naming = {.fused_gate_up = true}}); }

}  // namespace

extern const Family kGlm4, kGlm;
const Family kGlm4{.name = "glm4", .model_types = kNewer, .read = read, .describe = describe_newer};
const Family kGlm{.name = "glm", .model_types = kOlder, .read = read, .describe = describe_older};

}  // namespace llmprof::model
