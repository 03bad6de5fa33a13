#pragma once
// The two families on a device; inside of device_model.

#include <vector>

#include "workload/cuda/device_model.h"
#include "workload/gpt2_layer.h"
#include "workload/llama_layer.h"

namespace llmprof::workload::cuda {

class DeviceGpt2 final : public DeviceModel {
 public:
  DeviceGpt2(const ModelConfig& config, DeviceWeights weights, Device& device, const Sizes& sizes);

 private:
  void embed(const DevicePass& pass) override;
  void run_layer(const DevicePass& pass, std::int64_t layer) override;
  void final_norm(Pointer x, std::int64_t stride, std::int64_t rows) override;
  void attention(const DevicePass& pass, std::int64_t layer);
  void mlp(const DevicePass& pass, std::int64_t layer);

  std::vector<Gpt2LayerWeights<DeviceWeights>> layers_;
  std::vector<Gpt2LayerNames> layer_names_;
  Pointer token_embedding_, position_embedding_;
  DeviceNorm ln_f_;
  llmprof_name embed_name_, ln_f_name_;
  Buffer qkv_;    // (B, T, 3C)
  Buffer inner_;  // (B, T, F)
};

class DeviceLlama final : public DeviceModel {
 public:
  DeviceLlama(const ModelConfig& config, DeviceWeights weights, Device& device, const Sizes& sizes);

 private:
  void embed(const DevicePass& pass) override;
  void run_layer(const DevicePass& pass, std::int64_t layer) override;
  void final_norm(Pointer x, std::int64_t stride, std::int64_t rows) override;
  void self_attention(const DevicePass& pass, std::int64_t layer);
  void mlp(const DevicePass& pass, std::int64_t layer);

  std::vector<LlamaLayerWeights<DeviceWeights>> layers_;
  std::vector<LlamaLayerNames> layer_names_;
  Pointer embedding_;
  DeviceNorm norm_;
  llmprof_name embed_name_, norm_name_;
  Buffer cosine_, sine_;  // (capacity, D/2), float32
  Buffer q_;              // (B, T, H, D)
  Buffer k_, v_;          // (B, T, G, D)
  Buffer gate_, up_;      // (B, T, F)
};

}  // namespace llmprof::workload::cuda
