// Mixtral: Mistral with experts in every layer.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace mixtral {
namespace {

constexpr std::array<std::string_view, 1> kModelTypes{"mixtral"};

Config read(Fields& fields) {
  Decoder decoder = read_decoder(fields, {.hidden = 4096,  // MixtralConfig
                                          .layers = 32,
                                          .heads = 32,
                                          .kv_heads = 8,
                                          .width = 14336,
                                          .vocab = 32000,
                                          .positions = 131072});
  decoder.kind.mlp.experts = fields.count_or("num_local_experts", 8);
  decoder.kind.mlp.experts_per_token = fields.count_or("num_experts_per_tok", 2);
  decoder.kind.attention.window = read_window(fields, 0);
  expect_choice(fields, decoder.kind.mlp);
  return uniform(fields, std::move(decoder));
}

Structure describe(const Config& config) {
  return structure(config, {.naming = {.mlp = "block_sparse_moe", .gate = "w1", .up = "w3", .down = "w2"}});
}

}  // namespace
}  // namespace mixtral

extern const Family kMixtral;
const Family kMixtral{
    .name = "mixtral", .model_types = mixtral::kModelTypes, .read = mixtral::read, .describe = mixtral::describe};

}  // namespace llmprof::model
