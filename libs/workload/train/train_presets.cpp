#include "workload/train/train_presets.h"

#include <fmt/format.h>

#include <array>

#include "workload/presets.h"

namespace llmprof::workload {
namespace {

constexpr std::array kPresets{
    // 4 x 0.79 M in layers, 0.07 M + 0.03 M in tables: 3.26 M parameters. A step computes 10 GFLOP.
    TrainPreset{"demo", "GPT-2 shape, 3.3 M parameters, bytes: some seconds", gpt2_config(4, 256, 8, 256, 128), 8, 64,
                40, 3e-4},
    TrainPreset{"demo-gpu", "GPT-2 small: 124 M parameters, batch 4 x 512 tokens, 40 steps, 5 GB: the demo on a GPU",
                gpt2_config(12, 768, 12, 50257, 1024), 4, 512, 40, 3e-4},
    TrainPreset{"tiny", "GPT-2 shape, 0.1 M parameters, bytes: for tests", gpt2_config(2, 64, 4, 256, 64), 4, 32, 20,
                1e-3},
    TrainPreset{"gpt2", "GPT-2 small: 124 M parameters, batch 4 x 64 tokens, 40 steps, 2 GB",
                gpt2_config(12, 768, 12, 50257, 1024), 4, 64, 40, 3e-4},
};

}  // namespace

std::span<const TrainPreset> train_presets() { return kPresets; }

Result<TrainPreset> find_train_preset(std::string_view name) {
  for (const TrainPreset& preset : kPresets) {
    if (preset.name == name) return preset;
  }
  return Error{ErrorCode::kUsage, fmt::format("unknown preset '{}'", name), "--list-presets shows them"};
}

}  // namespace llmprof::workload
