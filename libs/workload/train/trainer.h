#pragma once
// GPT-2 in training: a forward pass that keeps what the way back needs, the backward pass, and the update. One step at
// a time; the pool works for it. Announces its parts under the names of the inference model.

#include <cstdint>
#include <span>
#include <vector>

#include "workload/buffer.h"
#include "workload/config.h"
#include "workload/gpt2_layer.h"
#include "workload/train/adamw.h"
#include "workload/train/causal_attention.h"
#include "workload/train/gradients.h"

namespace llmprof::workload {

class Trainer {
 public:
  // For batches of `batch` sequences of `tokens` tokens. The family must be GPT-2, tokens at most its positions.
  Trainer(const ModelConfig& config, Weights weights, std::int64_t batch, std::int64_t tokens, ThreadPool& pool);

  // The mean cross entropy of `targets` (B, T), each the token that follows its place in `inputs` (B, T).
  double forward(std::span<const Token> inputs, std::span<const Token> targets);
  // Fills gradients() for the last forward pass. Once per forward pass.
  void backward();
  void update(AdamW& optimizer);

  const ModelConfig& config() const { return config_; }
  Weights& weights() { return weights_; }
  const Weights& gradients() const { return gradients_; }

 private:
  // What one layer keeps: the input of every operator whose gradient needs it.
  struct Kept {
    float *x, *ln_1, *qkv, *probabilities, *mixed, *middle, *ln_2, *inner, *act;
  };

  void keep_activations();
  void embed();
  void forward_attention(std::size_t layer);
  void forward_mlp(std::size_t layer);
  void backward_head();
  void backward_attention(std::size_t layer);
  void backward_mlp(std::size_t layer);
  void update_layer(std::size_t layer, AdamW& optimizer);

  void normalise(const Norm& norm, const float* x, float* out);
  void project(const Linear& linear, const float* x, Store store, float* y) {
    apply(linear, x, rows_, store, y, pool_);
  }
  void back_through(const Linear& linear, const float* x, const float* dy, float* dx);
  void back_through(const Norm& norm, const float* x, const float* dy, float* dx);
  void update_tensors(std::string_view prefix, AdamW& optimizer);
  CausalAttention attention_of(const Kept& kept) const;
  // The gradient of a parameter has the parameter's place in its own block.
  float* gradient_of(const float* parameter) {
    return parameter == nullptr ? nullptr : gradients_.data() + (parameter - weights_.data());
  }

  ModelConfig config_;
  Weights weights_, gradients_;
  std::int64_t batch_, tokens_, rows_;
  ThreadPool& pool_;
  std::vector<Gpt2LayerWeights<Weights>> layers_;
  Norm ln_f_;
  Linear head_;  // the embedding table, in its second use
  ModuleNames names_;
  std::vector<Gpt2LayerNames> layer_names_;
  llmprof_name embed_name_, ln_f_name_, head_name_, loss_name_;

  std::vector<Token> inputs_, targets_;  // (B, T)
  FloatBuffer memory_;                   // of everything kept
  std::vector<Kept> kept_;
  float* last_;         // (B, T, C): the residual stream behind the last layer
  float* normed_;       // (B, T, C): that, normalised
  FloatBuffer logits_;  // (B, T, V): logits, then probabilities, then their gradients
  // Gradients on their way: of the residual stream, of what a norm gave, of an MLP's inside, of q, k and v.
  FloatBuffer dx_, dnormed_, dinner_, dqkv_, dprobabilities_;
};

}  // namespace llmprof::workload
