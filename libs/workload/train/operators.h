#pragma once
// What each operator of a forward pass gives back: from the gradient of its output ("dy") those of its input and of its
// parameters. Gradients of parameters are replaced, not added to, so nothing has to be zeroed between steps; the one
// exception is the embedding table, whose gradient lm_head has written before. Sums over rows are split by columns:
// the result does not depend on the number of threads.

#include <algorithm>
#include <cstdint>
#include <span>

#include "workload/buffer.h"
#include "workload/kernels.h"
#include "workload/linear.h"
#include "workload/model.h"
#include "workload/thread_pool.h"
#include "workload/weights.h"

namespace llmprof::workload {

// So many rows of n values that waking a thread is worth it.
inline std::int64_t worthwhile_rows(std::int64_t n) { return std::max<std::int64_t>(1, (1 << 15) / n); }

struct LinearGradient {
  float* weight = nullptr;  // (out, in)
  float* bias = nullptr;    // (out), or none
};

struct NormGradient {
  float* weight = nullptr;  // (C)
  float* bias = nullptr;    // (C)
};

// x (rows, in) was the input. dx (rows, in) = dy · W, gradient.weight = dyᵀ · x, gradient.bias = sum of dy's rows.
void linear_backward(const Linear& linear, const float* x, const float* dy, std::int64_t rows,
                     const LinearGradient& gradient, float* dx, ThreadPool& pool);

struct NormInput {
  const float* x;  // (rows, columns): what was normalised
  std::int64_t rows, columns;
  float epsilon;
};
// dx += the gradient of x: the residual stream around the block passes its own through.
void layer_norm_backward(const Norm& norm, const NormInput& input, const float* dy, const NormGradient& gradient,
                         float* dx, ThreadPool& pool);

void gelu_backward(const float* x, float* dy, std::int64_t count, ThreadPool& pool);  // in place

// Row b·T + t of dx (B·T, C) is added to row tokens[b·T + t] of token_table; position_table[t] becomes its sum over b.
struct EmbeddingGradient {
  float* token_table;     // (V, C)
  float* position_table;  // (positions, C); rows from T on are not touched
};
void embedding_backward(std::span<const Token> tokens, std::int64_t batch, std::int64_t columns, const float* dx,
                        const EmbeddingGradient& gradient, ThreadPool& pool);

// The mean over rows of -log softmax(logits)[target]. Leaves the probabilities where the logits (rows, V) were.
double cross_entropy(std::span<const Token> targets, std::int64_t vocab, float* logits, ThreadPool& pool);
// Turns those probabilities into the gradient of the logits: (p - 1 at the target) / rows.
void cross_entropy_backward(std::span<const Token> targets, std::int64_t vocab, float* probabilities, ThreadPool& pool);

// Causal attention of whole sequences for training: no cache, and the probabilities are kept for the way back. Every
// product is a full square per sequence and head; half of it is masked.

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

// AdamW: Adam with bias correction, and weight decay apart from the gradient. Matrices decay, embedding tables
// included; biases and norm weights do not.

struct AdamWOptions {
  double learning_rate = 3e-4;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
};

// The numbers of update `step` = 1, 2, … for parameters that decay, or not.
AdamWStep adamw_step(const AdamWOptions& options, std::int64_t step, bool decays);

// `count` parameters and their moments, which begin with 0.
void adamw_update(const AdamWStep& step, const float* gradients, std::int64_t count, float* parameters, float* first,
                  float* second, ThreadPool& pool);

}  // namespace llmprof::workload
