#pragma once
// What each operator of a forward pass gives back: from the gradient of its output ("dy") those of its input and of its
// parameters. Gradients of parameters are replaced, not added to, so nothing has to be zeroed between steps; the one
// exception is the embedding table, whose gradient lm_head has written before. Sums over rows are split by columns:
// the result does not depend on the number of threads.

#include <cstdint>
#include <span>

#include "workload/linear.h"
#include "workload/model.h"
#include "workload/thread_pool.h"
#include "workload/weights.h"

namespace llmprof::workload {

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

}  // namespace llmprof::workload
