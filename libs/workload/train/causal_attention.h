#pragma once
// Causal attention of whole sequences for training: no cache, and the probabilities are kept for the way back. Every
// product is a full square per sequence and head; half of it is masked.

#include <cstdint>

#include "workload/buffer.h"
#include "workload/thread_pool.h"

namespace llmprof::workload {

struct CausalAttention {
  std::int64_t batch, tokens, heads, head_dim;
  const float* qkv;      // (B, T, 3, H, D)
  float* probabilities;  // (B, H, T, T)
  ThreadPool& pool;

  std::int64_t width() const { return heads * head_dim; }
  std::int64_t squares() const { return batch * heads * tokens * tokens; }  // values of `probabilities`
};

// Writes the probabilities and out (B, T, H, D).
void attend_forward(const CausalAttention& attention, float* out);

// From dout (B, T, H, D) to dqkv (B, T, 3, H, D), with what attend_forward left. scratch grows to (B, H, T, T).
void attend_backward(const CausalAttention& attention, const float* dout, FloatBuffer& scratch, float* dqkv);

}  // namespace llmprof::workload
