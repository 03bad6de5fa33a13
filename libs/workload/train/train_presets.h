#pragma once
// Named training runs.

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "workload/config.h"

namespace llmprof::workload {

struct TrainPreset {
  std::string_view name;
  std::string_view summary;
  ModelConfig config;
  std::int64_t batch;
  std::int64_t tokens;
  std::int64_t steps;
  double learning_rate;
};

std::span<const TrainPreset> train_presets();
Result<TrainPreset> find_train_preset(std::string_view name);

}  // namespace llmprof::workload
