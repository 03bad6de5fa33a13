#pragma once
// Rotary positions: cos and sin of position · theta^(-2i/D), for the positions so far.

#include <cstdint>
#include <vector>

#include "workload/config.h"

namespace llmprof::workload {

struct RotaryAngles {
  std::vector<float> cosine, sine;  // (positions so far, D/2)
  void extend(const ModelConfig& config, std::int64_t positions);
};

}  // namespace llmprof::workload
