// DeepSeek-V3 and R1, Kimi K2: DeepSeek-V2 with a learned offset of each expert's score.

#include <array>

#include "model/families/latent.h"

namespace llmprof::model {
namespace deepseek_v3 {
namespace {

constexpr std::array<std::string_view, 3> kModelTypes{"deepseek_v3", "deepseek_v32", "kimi_k2"};

Config read(Fields& fields) {
  return read_latent(fields, {.decoder = {.hidden = 7168,  // DeepseekV3Config
                                          .layers = 61,
                                          .heads = 128,
                                          .width = 18432,
                                          .vocab = 129280,
                                          .positions = 4096},
                              .expert_width = 2048,
                              .experts = 256,
                              .experts_per_token = 8,
                              .shared = 1,
                              .dense_first = 3,
                              .score_offsets = true});
}

Structure describe(const Config& config) { return structure(config, {}); }

}  // namespace
}  // namespace deepseek_v3

extern const Family kDeepseekV3;
const Family kDeepseekV3{.name = "deepseek_v3",
                         .model_types = deepseek_v3::kModelTypes,
                         .read = deepseek_v3::read,
                         .describe = deepseek_v3::describe};

}  // namespace llmprof::model
