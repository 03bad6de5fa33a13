#pragma once
// Generation on a device: passes, and decode as one CUDA graph if wished.

#include <memory>

#include "workload/cuda/device_model.h"
#include "workload/generate.h"

namespace llmprof::workload::cuda {

enum class Decode : std::uint8_t {
  kLaunches,  // every kernel of a step is launched
  kGraph,     // captured before the first step, then launched as one
};

class DeviceRunner final : public Runner {
 public:
  DeviceRunner(Device& device, std::unique_ptr<DeviceModel> model, const GenerateOptions& options, Decode decode);
  const ModelConfig& config() const override { return model_->config(); }
  Result<void> prepare(std::span<const Token> prompts) override;
  Result<void> run(std::int64_t position, std::span<const Token> tokens, std::span<Token> next) override;
  const DeviceModel& model() const { return *model_; }

 private:
  bool greedy() const { return options_.sampler.kind == Sampler::Kind::kGreedy; }
  void enqueue(std::int64_t tokens);
  void sample_on_host(std::int64_t position, std::span<Token> next);

  Device& device_;
  std::unique_ptr<DeviceModel> model_;
  GenerateOptions options_;
  Decode decode_;
  std::unique_ptr<Graph> graph_;
  std::vector<float> logits_;  // (B, V), where the host samples
  bool holds_inputs_ = false;  // the device has chosen them itself
};

}  // namespace llmprof::workload::cuda
