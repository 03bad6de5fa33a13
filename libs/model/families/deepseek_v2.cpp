// DeepSeek-V2: latent attention; after the first layers routed and shared experts.

#include <array>

#include "model/families/latent.h"

namespace llmprof::model {
namespace deepseek_v2 {
namespace {

constexpr std::array<std::string_view, 1> kModelTypes{"deepseek_v2"};

Config read(Fields& fields) {
  return read_latent(fields, {.decoder = {.hidden = 4096,  // DeepseekV2Config
                                          .layers = 32,
                                          .heads = 32,
                                          .width = 11008,
                                          .vocab = 32000,
                                          .positions = 2048},
                              .expert_width = 1407,
                              .experts = 64,
                              .experts_per_token = 0,
                              .shared = 2,
                              .dense_first = 0});
}

Structure describe(const Config& config) { return structure(config, {}); }

}  // namespace
}  // namespace deepseek_v2

extern const Family kDeepseekV2;
const Family kDeepseekV2{.name = "deepseek_v2",
                         .model_types = deepseek_v2::kModelTypes,
                         .read = deepseek_v2::read,
                         .describe = deepseek_v2::describe};

}  // namespace llmprof::model
