#pragma once
// Activations in float32, by the fast units for powers of two and reciprocals: a memory-bound kernel has time for about
// 25 instructions per 2-byte value. Errors are a few float32 steps of the result.

namespace llmprof {

__device__ inline float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
__device__ inline float silu(float x) { return x * sigmoid(x); }

// x Φ(x). The tail of the normal distribution is p(t) exp(-x²/2) with t = 1 / (1 + 0.3275911 |x| / √2): Abramowitz and
// Stegun, Handbook of Mathematical Functions, 7.1.26, off by less than 1.5e-7.
__device__ inline float gelu(float x) {
  const float t = __fdividef(1.0f, fmaf(0.3275911f * 0.70710678f, fabsf(x), 1.0f));
  float p = fmaf(1.061405429f, t, -1.453152027f);
  p = fmaf(p, t, 1.421413741f);
  p = fmaf(p, t, -0.284496736f);
  p = fmaf(p, t, 0.254829592f);
  const float tail = 0.5f * p * t * __expf(-0.5f * x * x);
  return x * (x < 0 ? tail : 1.0f - tail);
}

// 0.5 x (1 + tanh u) = x sigmoid(2u), u = √(2/π) (x + 0.044715 x³).
__device__ inline float gelu_tanh(float x) { return x * sigmoid(2 * 0.79788456f * fmaf(0.044715f * x * x, x, x)); }

}  // namespace llmprof
