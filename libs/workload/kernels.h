#pragma once
// The inner loops that are not matrix products: each works on one row, or one head, on the calling thread.
// row_kernels.cpp is compiled once for any x86-64 and once for machines with AVX2 and FMA (x86-64-v3); kernels()
// gives the set that this machine runs.

#include <cstdint>

namespace llmprof::workload {

// One query against the cached keys and values of its head.
struct HeadQuery {
  const float* query;   // (D)
  const float* keys;    // (context, D)
  const float* values;  // (context, D)
  std::int64_t context;
  std::int64_t head_dim;  // D
  float scale;
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
};

const RowKernels& kernels();

// Both sets, for tests. The second one must only run where kernels() returns it.
extern const RowKernels kBaselineKernels;
extern const RowKernels kAvx2Kernels;

}  // namespace llmprof::workload
