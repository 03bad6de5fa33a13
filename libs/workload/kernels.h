#pragma once
// The inner loops that are not matrix products: each works on one row, or one head, on the calling thread.
// row_kernels.cpp is compiled once for any x86-64 and once for machines with AVX2 and FMA (x86-64-v3); kernels()
// gives the set that this machine runs.

#include <cstdint>

namespace llmprof::workload {

// One query against the cached keys and values of its head: in one piece, or in blocks of a common store.
struct HeadQuery {
  const float* query;   // (D)
  const float* keys;    // (context, D); where there are blocks: of block 0, (block_tokens, D)
  const float* values;  // the same
  std::int64_t context;
  std::int64_t head_dim;  // D
  float scale;
  const std::int32_t* blocks = nullptr;  // the numbers of the sequence's blocks; none: in one piece
  std::int64_t block_tokens = 0, block_stride = 0;
};

// One update of AdamW. The corrections are 1 / (1 - beta^t) for step t = 1, 2, …
struct AdamWStep {
  float learning_rate, beta1, beta2, epsilon, weight_decay;
  float correction1, correction2;
};

// The statistics of a row that LayerNorm divides out.
struct RowStatistics {
  float mean, inverse;  // inverse: 1 / sqrt(variance + epsilon)
};

struct RowKernels {
  const char* name;
  // out = x / rms(x) * weight                                    all (n)
  void (*rms_norm)(const float* x, const float* weight, float epsilon, std::int64_t n, float* out);
  // out = (x - mean(x)) / std(x) * weight + bias                 all (n)
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float epsilon, std::int64_t n, float* out);
  // row = softmax(row * scale)
  void (*softmax)(float* row, float scale, std::int64_t n);
  // out (D) = softmax(query · keysᵀ * scale) · values; scores (context) is scratch
  void (*attend)(const HeadQuery& head, float* scores, float* out);
  // Rotary position: pairs (x[i], x[i + half]) turned by angle i. out may be x.
  void (*rotate)(const float* x, const float* cosine, const float* sine, std::int64_t half, float* out);
  // gate = silu(gate) * up
  void (*silu_multiply)(float* gate, const float* up, std::int64_t n);
  // x = gelu(x), the tanh form
  void (*gelu)(float* x, std::int64_t n);
  void (*add)(float* y, const float* x, std::int64_t n);  // y += x
  // out[i] = center + width * u(key, first + i), u uniform in [-1, 1): a function of its arguments only
  void (*fill_random)(float* out, std::int64_t first, std::int64_t n, std::uint32_t key, float center, float width);

  // ---- for training: "d" is the gradient of the loss with respect to what follows it ----
  // dx += what LayerNorm's output gradient dy gives its input x; returns the statistics of x, for the next one
  RowStatistics (*layer_norm_backward)(const float* x, const float* weight, const float* dy, float epsilon,
                                       std::int64_t n, float* dx);
  // dweight += dy * normalised x, dbias += dy; n columns of one row
  void (*layer_norm_gradients)(const float* x, const float* dy, RowStatistics row, std::int64_t n, float* dweight,
                               float* dbias);
  // dy = gradient of gelu's input x, given that of its output
  void (*gelu_backward)(const float* x, float* dy, std::int64_t n);
  // dp = gradient of the scores that row p = softmax(scores * scale) came from
  void (*softmax_backward)(const float* p, float* dp, float scale, std::int64_t n);
  void (*multiply)(float* x, float factor, std::int64_t n);  // x *= factor
  // Moves n parameters against their gradient; first and second are the moments.
  void (*adamw)(const AdamWStep& step, const float* gradient, std::int64_t n, float* parameter, float* first,
                float* second);
};

const RowKernels& kernels();

// Both sets, for tests. The second one must only run where kernels() returns it.
extern const RowKernels kBaselineKernels;
extern const RowKernels kAvx2Kernels;

}  // namespace llmprof::workload
