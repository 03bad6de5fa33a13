#include "workload/rotary.h"

#include <cmath>

namespace llmprof::workload {

// Computed in double: angles grow with the position.
void RotaryAngles::extend(const ModelConfig& config, std::int64_t positions) {
  const std::int64_t half = config.head_dim / 2;
  for (auto position = static_cast<std::int64_t>(cosine.size()) / half; position < positions; ++position) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(config.head_dim);
      const double angle = static_cast<double>(position) * std::pow(config.rope_theta, exponent);
      cosine.push_back(static_cast<float>(std::cos(angle)));
      sine.push_back(static_cast<float>(std::sin(angle)));
    }
  }
}

}  // namespace llmprof::workload
