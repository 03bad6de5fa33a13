// Phi-3, Phi-3.5 and Phi-4: Llama with q, k and v in one matrix, gate and up in another.

#include <array>

#include "model/families/standard.h"

namespace llmprof::model {
namespace phi3 {
namespace {

constexpr std::array<std::string_view, 3> kModelTypes{"phi3", "phi3_v", "phi4mm"};

Config read(Fields& fields) {
  Decoder decoder = read_decoder(fields, {.hidden = 3072,  // Phi3Config
                                          .layers = 32,
                                          .heads = 32,
                                          .width = 8192,
                                          .vocab = 32064,
                                          .positions = 4096});
  decoder.kind.attention.window = read_window(fields, 0);
  fields.ignore({"full_attn_mod", "interpolate_factor"});  // 1 in every file
  return uniform(fields, std::move(decoder));
}

Structure describe(const Config& config) {
  return structure(config, {.naming = {.fused_qkv = true, .fused_gate_up = true}});
}

}  // namespace
}  // namespace phi3

extern const Family kPhi3;
const Family kPhi3{.name = "phi3", .model_types = phi3::kModelTypes, .read = phi3::read, .describe = phi3::describe};

}  // namespace llmprof::model
