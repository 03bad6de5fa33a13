#pragma once
// Functions that compilers turn into vector code, which they cannot do with those of the C library. float32 throughout,
// a few steps off.

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace llmprof::bench {

// 2^n e^r with |r| <= ln 2 / 2, where the series to r^6 is off by 1.3e-7. From -87 to 88; what lies beyond is clamped.
inline float vector_exp(float x) {
  x = x < -87.0f ? -87.0f : (x > 88.0f ? 88.0f : x);
  const float scaled = x * 1.44269504f;
  const auto n = static_cast<std::int32_t>(scaled + (scaled < 0 ? -0.5f : 0.5f));
  const float r = (x - static_cast<float>(n) * 0.693359375f) + static_cast<float>(n) * 2.12194440e-4f;
  float sum = 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * r + 1.0f;
  sum = sum * r + 1.0f;
  return sum * std::bit_cast<float>((n + 127) << 23);
}

inline float vector_silu(float x) { return x / (1.0f + vector_exp(-x)); }

inline double exact_gelu(double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }

// x Φ(x), the tail by Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: off by less than 1.5e-7.
inline float vector_gelu(float x) {
  const float t = 1.0f / (1.0f + 0.3275911f * 0.70710678f * std::fabs(x));
  const float p = ((((1.061405429f * t - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t + 0.254829592f) * t;
  const float tail = 0.5f * p * vector_exp(-0.5f * x * x);
  return x * (x < 0 ? tail : 1.0f - tail);
}

// 0.5 x (1 + tanh u) = x / (1 + e^(-2u)), u = √(2/π) (x + 0.044715 x³).
inline float vector_gelu_tanh(float x) {
  return x / (1.0f + vector_exp(-2 * 0.79788456f * (x + 0.044715f * x * x * x)));
}

}  // namespace llmprof::bench
