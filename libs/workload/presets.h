#pragma once
// Named model shapes with a run that suits them.

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "workload/config.h"

namespace llmprof::workload {

struct Preset {
  std::string_view name;
  std::string_view summary;
  ModelConfig config;
  std::int64_t batch;
  std::int64_t prompt_tokens;
  std::int64_t new_tokens;
};

std::span<const Preset> presets();
Result<Preset> find_preset(std::string_view name);

}  // namespace llmprof::workload
