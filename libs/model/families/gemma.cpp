// Gemma: Llama's layers with wide heads, a GELU gate and tied embeddings.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace gemma {
namespace {

constexpr std::array<std::string_view, 1> kModelTypes{"gemma"};

Config read(Fields& fields) {
  Decoder decoder = read_decoder(fields, {.hidden = 3072,  // GemmaConfig
                                          .layers = 28,
                                          .heads = 16,
                                          .kv_heads = 16,
                                          .head_dim = 256,
                                          .width = 24576,
                                          .vocab = 256000,
                                          .positions = 8192,
                                          .tied = true});
  decoder.kind.attention.qkv_bias = decoder.kind.attention.out_bias = fields.flag_or("attention_bias", false);
  return uniform(fields, std::move(decoder));
}

Structure describe(const Config& config) { return structure(config, {}); }

}  // namespace
}  // namespace gemma

extern const Family kGemma;
const Family kGemma{
    .name = "gemma", .model_types = gemma::kModelTypes, .read = gemma::read, .describe = gemma::describe};

}  // namespace llmprof::model
