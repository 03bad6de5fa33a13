#pragma once
// Which model a command runs and where: the options that infer and serve share.

#include <cstdint>
#include <memory>
#include <string>

#include "workload/choose_device.h"
#include "workload/config.h"
#include "workload/cuda/operators.h"
#include "workload/thread_pool.h"
#include "workload/weights.h"

namespace CLI {
class App;
}

namespace llmprof::workload {

struct ModelOptions {
  std::string preset;  // "": the demo of the device
  std::string device = "cpu", type;
  std::string family, config_path, weights_path;
  ModelConfig sizes;  // 0: as the preset says
  std::int64_t threads = 0;
  std::uint64_t seed = 0;
};

void describe_model(CLI::App& command, ModelOptions& options);

Result<Preset> choose_preset(const ModelOptions& options, const ChosenDevice& device);
Result<ModelConfig> choose_model(const ModelOptions& options, const Preset& preset);

// The file's, or random ones.
Result<Weights> make_weights(const ModelOptions& options, const ModelConfig& config, ThreadPool& pool);
std::string weights_text(const ModelOptions& options);  // "random, seed 0" or a path
// The same on a GPU. Random weights are made there: those of a large model would take the CPU long.
Result<cuda::DeviceWeights> make_device_weights(const ModelOptions& options, const ModelConfig& config, ElementType type,
                                                ThreadPool& pool, cuda::Device& gpu);

}  // namespace llmprof::workload
