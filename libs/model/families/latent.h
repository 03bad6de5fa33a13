#pragma once
// What the DeepSeek families share: latent attention, and experts after the first dense layers.

#include "model/families/standard.h"

namespace llmprof::model {

struct LatentDefaults {
  Defaults decoder;
  std::int64_t expert_width = 0, experts = 0, experts_per_token = 0, shared = 0;
  std::int64_t dense_first = 0;
  bool score_offsets = false;  // e_score_correction_bias: a value for each expert
};
Config read_latent(Fields& fields, const LatentDefaults& defaults);

}  // namespace llmprof::model
