#pragma once
// GPT-2 in training on a device, float32: what Trainer does on the CPU, with the same parts under the same names.

#include <cstdint>
#include <span>
#include <vector>

#include "workload/cuda/train_operators.h"
#include "workload/gpt2_layer.h"
#include "workload/train/train.h"

namespace llmprof::workload::cuda {

class DeviceTrainer final : public TrainingModel {
 public:
  // check_training must have passed. The weights are set by the caller.
  DeviceTrainer(Device& device, const ModelConfig& config, const TrainOptions& options);

  // Each waits for the device at its end, so that the times of the three are theirs.
  Result<double> forward(std::span<const Token> inputs, std::span<const Token> targets) override;
  Result<void> backward() override;
  Result<void> update() override;

  DeviceWeights& weights() { return weights_; }
  const DeviceWeights& gradients() const { return gradients_; }

 private:
  // What one layer keeps: the input of every operator whose gradient needs it.
  struct Kept {
    Pointer x, ln_1, qkv, probabilities, mixed, middle, ln_2, inner, act;
  };

  void keep_activations();
  void forward_attention(std::size_t layer);
  void forward_mlp(std::size_t layer);
  void backward_head();
  void backward_attention(std::size_t layer);
  void backward_mlp(std::size_t layer);
  void update_layer(std::size_t layer);
  void update_tensors(std::string_view prefix);

  void normalise(const DeviceNorm& norm, Pointer x, Pointer out) {
    run_.normalise(norm, config_, x, config_.hidden, rows_, out);
  }
  void project(const DeviceLinear& linear, Pointer x, Store store, Pointer y) {
    run_.project(linear, x, rows_, store, y);
  }
  void copy_stream(Pointer from, Pointer to) { run_.device().copy(to, from, run_.bytes(rows_ * config_.hidden)); }
  void back_through(const DeviceLinear& linear, Pointer x, Pointer dy, Pointer dx);
  void back_through(const DeviceNorm& norm, Pointer x, Pointer dy, Pointer dx);
  DeviceCausalAttention attention_of(const Kept& kept) const;
  // The gradient, or a moment, of a parameter has the parameter's place in its own block.
  Pointer moved(Pointer parameter, const DeviceWeights& block) const {
    return parameter == 0 ? 0 : block.base() + (parameter - weights_.base());
  }
  Buffer scratch(std::int64_t values) const { return {run_.device(), run_.bytes(values)}; }

  ModelConfig config_;
  AdamWOptions optimizer_;
  std::int64_t batch_, tokens_, rows_;
  std::int64_t step_ = 0;
  TrainOperators run_;
  DeviceWeights weights_, gradients_, first_, second_;  // the two moments of AdamW begin with 0
  std::vector<Gpt2LayerWeights<DeviceWeights>> layers_;
  DeviceNorm ln_f_;
  DeviceLinear head_;  // the embedding table, in its second use
  ModuleNames names_;
  std::vector<Gpt2LayerNames> layer_names_;
  llmprof_name embed_name_, ln_f_name_, head_name_, loss_name_;

  Buffer inputs_, targets_;  // int32; inputs: a position, which is 0, then the tokens (B, T)
  Buffer memory_;            // of everything kept
  std::vector<Kept> kept_;
  Pointer last_ = 0, normed_ = 0;  // (B, T, C): the residual stream behind the last layer; that, normalised
  Buffer logits_;                  // (B, T, V): logits, then probabilities, then their gradients
  Buffer losses_;                  // (B, T), float64
  // Gradients on their way: of the residual stream, of what a norm gave, of an MLP's inside, of q, k and v.
  Buffer dx_, dnormed_, dinner_, dqkv_, dprobabilities_, moments_;
};

}  // namespace llmprof::workload::cuda
