#pragma once
// Activations in float32, by the units for powers of two and reciprocals: a memory-bound kernel has time for about 28
// instructions per 2-byte value on an H200. Errors are a few float32 steps of the result; what is subnormal becomes 0.

namespace llmprof {

__device__ inline float fast_exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
__device__ inline float fast_reciprocal(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

constexpr float kLog2E = 1.44269504f;

__device__ inline float silu(float x) { return x * fast_reciprocal(1.0f + fast_exp2(-kLog2E * x)); }

// x Φ(x) = max(x, 0) - |x| tail, where the tail of the normal distribution is p(t) exp(-x²/2), t = 1 / (1 + 0.3275911
// |x| / √2): Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26, off by less than 1.5e-7.
__device__ inline float gelu(float x) {
  const float t = fast_reciprocal(fmaf(0.3275911f * 0.70710678f, fabsf(x), 1.0f));
  float p = fmaf(0.5f * 1.061405429f, t, -0.5f * 1.453152027f);
  p = fmaf(p, t, 0.5f * 1.421413741f);
  p = fmaf(p, t, -0.5f * 0.284496736f);
  p = fmaf(p, t, 0.5f * 0.254829592f);
  const float tail = p * t * fast_exp2(-0.5f * kLog2E * x * x);
  return fmaf(-fabsf(x), tail, fmaxf(x, 0.0f));
}

// 0.5 x (1 + tanh u) = x / (1 + e^(-2u)), u = √(2/π) (x + 0.044715 x³).
__device__ inline float gelu_tanh(float x) {
  constexpr float kLinear = -2 * 0.79788456f * kLog2E, kCubic = kLinear * 0.044715f;
  return x * fast_reciprocal(1.0f + fast_exp2(x * fmaf(kCubic, x * x, kLinear)));
}

}  // namespace llmprof
