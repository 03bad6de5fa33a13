#pragma once
// Named model shapes with a run that suits them.

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "workload/config.h"

namespace llmprof::workload {

// A complete GPT-2 of these sizes.
constexpr ModelConfig gpt2_config(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab,
                                  std::int64_t positions) {
  return {.family = Family::kGpt2,
          .layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = heads,
          .head_dim = hidden / heads,
          .intermediate = 4 * hidden,
          .vocab = vocab,
          .positions = positions,
          .tied_embeddings = true};
}

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

// Named training runs.

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
