#pragma once
// GPT-2 in training on a device, float32: the trainer of train/trainer.h with its operators enqueued. As there,
// gradients of parameters are replaced, but for the embedding table's, whose rows are added to what lm_head wrote.

#include <cstdint>
#include <span>

#include "workload/cuda/operators.h"
#include "workload/train/trainer.h"

namespace llmprof::workload::cuda {

class DeviceTraining : private Operators {
 public:
  using WeightsType = DeviceWeights;
  using Values = Pointer;
  using Memory = Buffer;
  struct Gradient {
    Pointer weight = 0, bias = 0;  // bias: 0 where there is none
  };

  DeviceTraining(const ModelConfig& config, const TrainOptions& options, Device& device);
  DeviceWeights zeros() const { return {device(), config_, ElementType::kFloat32}; }
  Buffer allocate(std::int64_t values) const { return {device(), bytes(values)}; }
  static Pointer address(const Buffer& memory) { return memory.pointer(); }
  static Pointer at(Pointer base, std::int64_t values) { return base + static_cast<Pointer>(values) * sizeof(float); }

  void set_batch(std::span<const Token> inputs, std::span<const Token> targets);
  void embed(Pointer table, Pointer positions, Pointer out) const {
    Operators::embed({batch_, tokens_, inputs_.pointer()}, table, positions, config_.hidden, out);
  }
  void normalise(const DeviceNorm& norm, Pointer x, Pointer out) const {
    Operators::normalise(norm, config_, x, config_.hidden, rows_, out);
  }
  void project(const DeviceLinear& linear, Pointer x, Store store, Pointer y) const {
    Operators::project(linear, x, rows_, store, y);
  }
  void gelu(Pointer x, Pointer out) const { Operators::gelu(x, rows_ * config_.intermediate, out); }
  void attend_forward(Pointer qkv, Pointer probabilities, Pointer out) const;
  Result<double> cross_entropy(Pointer logits) const;  // waits for the device
  void copy_stream(Pointer from, Pointer to) const { device().copy(to, from, bytes(rows_ * config_.hidden)); }
  void clear_stream(Pointer to) const { device().clear(to, bytes(rows_ * config_.hidden)); }

  void backward(const DeviceLinear& linear, Pointer x, Pointer dy, const Gradient& gradient, Pointer dx) const;
  void backward(const DeviceNorm& norm, Pointer x, Pointer dy, const Gradient& gradient, Pointer dx) const;  // dx +=
  void gelu_backward(Pointer x, Pointer dy) const;
  void attend_backward(Pointer qkv, Pointer probabilities, Pointer dout, Pointer dqkv) const;
  void cross_entropy_backward(Pointer logits) const;
  void embedding_backward(Pointer dx, Pointer table, Pointer positions) const;
  void adamw(const AdamWStep& step, Pointer gradient, std::int64_t count, Pointer parameter, Pointer first,
             Pointer second) const;
  // Waits for the device, so that the times of forward, backward and update are theirs.
  Result<void> finish() const { return device().finish(); }

 private:
  struct Heads;
  Heads heads_of(std::int64_t sequence, Pointer qkv, Pointer out, Pointer squares) const;
  // One product per head of a sequence, as one batch.
  void of_heads(std::int64_t n, std::int64_t k, const Matrix& left, const Matrix& right, const Matrix& out) const;
  float scale() const;

  ModelConfig config_;
  std::int64_t batch_, tokens_, rows_;
  Buffer inputs_, targets_;  // int32; inputs: a position, which is 0, then the tokens (B, T)
  Buffer losses_;            // (B, T), float64
  Buffer dprobabilities_;    // (B, H, T, T)
  Buffer moments_;           // (B, T, 2): of the rows that a norm goes back through
};

using DeviceTrainer = Gpt2Trainer<DeviceTraining>;

}  // namespace llmprof::workload::cuda
