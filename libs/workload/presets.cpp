#include "workload/presets.h"

#include <fmt/format.h>

#include <array>

namespace llmprof::workload {

namespace {

constexpr ModelConfig llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads,
                            std::int64_t intermediate, std::int64_t vocab) {
  return {.family = Family::kLlama,
          .layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = hidden / heads,
          .intermediate = intermediate,
          .vocab = vocab,
          .positions = 4096};
}

constexpr ModelConfig tied(ModelConfig config) {
  config.tied_embeddings = true;
  return config;
}

constexpr std::array kPresets{
    // 8 x 11.27 M + 2 x 16.78 M = 123.7 M parameters, 495 MB. A decode step reads all but the embedding table: 428 MB.
    Preset{"demo", "Llama, 124 M parameters, 495 MB: decode reads memory, prefill computes",
           llama(8, 1024, 16, 4, 2816, 16384), 1, 256, 64},
    // 16 x 60.8 M + 262.7 M = 1,236 M parameters: the shape of Llama 3.2 1B. So many tokens that decode takes a
    // second on an H200: power is read ten times a second.
    Preset{"demo-gpu", "Llama, 1.24 G parameters, 2.5 GB in bfloat16: the demo on a GPU",
           tied(llama(16, 2048, 32, 8, 8192, 128256)), 1, 512, 768},
    Preset{"tiny-llama", "Llama, 0.5 M parameters: for tests", llama(2, 128, 4, 2, 344, 512), 2, 16, 8},
    Preset{"tiny-gpt2", "GPT-2, 0.5 M parameters: for tests", gpt2_config(2, 128, 4, 512, 128), 2, 16, 8},
    Preset{"gpt2", "GPT-2 small as published: 124 M parameters, 498 MB", gpt2_config(12, 768, 12, 50257, 1024), 1, 128,
           32},
    Preset{"gpt2-medium", "GPT-2 medium as published: 355 M parameters, 1.4 GB", gpt2_config(24, 1024, 16, 50257, 1024),
           1, 128, 32},
    Preset{"tinyllama-1.1b", "TinyLlama 1.1B as published: 1.1 G parameters, 4.4 GB",
           llama(22, 2048, 32, 4, 5632, 32000), 1, 128, 32},
};

constexpr std::array kTrainPresets{
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

template <class Table>
auto find(const Table& table, std::string_view name) -> Result<typename Table::value_type> {
  for (const auto& preset : table) {
    if (preset.name == name) return preset;
  }
  return Error{ErrorCode::kUsage, fmt::format("unknown preset '{}'", name), "--list-presets shows them"};
}

}  // namespace

std::span<const Preset> presets() { return kPresets; }
std::span<const TrainPreset> train_presets() { return kTrainPresets; }

Result<Preset> find_preset(std::string_view name) { return find(kPresets, name); }
Result<TrainPreset> find_train_preset(std::string_view name) { return find(kTrainPresets, name); }

}  // namespace llmprof::workload
