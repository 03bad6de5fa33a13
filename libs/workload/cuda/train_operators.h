#pragma once
// What training adds to the operators of a forward pass: float32, enqueued on a device. As train/gradients.h: gradients
// of parameters are replaced, but for the embedding table's, whose rows are added to what lm_head wrote.

#include "workload/cuda/operators.h"
#include "workload/kernels.h"

namespace llmprof::workload::cuda {

struct DeviceCausalAttention {
  std::int64_t batch, tokens, heads, head_dim;
  Pointer qkv;            // (B, T, 3, H, D)
  Pointer probabilities;  // (B, H, T, T)
  std::int64_t width() const { return heads * head_dim; }
};

class TrainOperators : public Operators {
 public:
  explicit TrainOperators(Device& device) : Operators(device, ElementType::kFloat32) {}

  void linear_backward(const DeviceLinear& linear, Pointer x, Pointer dy, std::int64_t rows,
                       const DeviceLinear& gradient, Pointer dx) const;
  // moments (rows, 2) is scratch. dx is added to.
  void layer_norm_backward(const DeviceNorm& norm, const ModelConfig& config, Pointer x, Pointer dy, std::int64_t rows,
                           const DeviceNorm& gradient, Pointer moments, Pointer dx) const;
  void gelu_backward(Pointer x, std::int64_t count, Pointer dy) const;
  // tokens (B, T) int32.
  void embedding_backward(Pointer tokens, std::int64_t batch, std::int64_t length, std::int64_t columns, Pointer dx,
                          Pointer token_table, Pointer position_table) const;
  void attend_forward(const DeviceCausalAttention& a, Pointer out) const;
  // scratch (B, H, T, T)
  void attend_backward(const DeviceCausalAttention& a, Pointer dout, Pointer scratch, Pointer dqkv) const;
  // losses (rows): float64
  void cross_entropy(Pointer targets, std::int64_t rows, std::int64_t vocab, Pointer logits, Pointer losses) const;
  void cross_entropy_backward(Pointer targets, std::int64_t rows, std::int64_t vocab, Pointer probabilities) const;
  void adamw(const AdamWStep& step, Pointer gradient, std::int64_t count, Pointer parameter, Pointer first,
             Pointer second) const;

 private:
  // One product per head of a sequence, as one batch.
  void of_heads(const DeviceCausalAttention& a, std::int64_t n, std::int64_t k, const Matrix& left, const Matrix& right,
                const Matrix& out) const;
};

}  // namespace llmprof::workload::cuda
