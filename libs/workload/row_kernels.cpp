// Compiled twice (CMakeLists.txt): LLMPROF_ROW_KERNELS names the set. Only static functions and no templates here: a
// shared inline function compiled for AVX2 could be the one that the linker keeps for everybody.

#include "workload/kernels.h"

namespace llmprof::workload {
namespace {

inline float bits_to_float(std::uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

// e^x to 2 units in the last place, without branches, so that loops over it vectorise.
inline float exponential(float x) {
  x = x < -87.0F ? -87.0F : x;
  x = x > 88.0F ? 88.0F : x;
  const float scaled = x * 1.44269504F;  // log2(e)
  const int power = static_cast<int>(scaled + (scaled < 0 ? -0.5F : 0.5F));
  const auto whole = static_cast<float>(power);
  // r in [-ln2/2, ln2/2]; ln2 in two parts, so that the first product is exact
  const float r = (x - whole * 0.693359375F) + whole * 2.12194440e-4F;
  // Taylor to the 7th power: the first term left out is r^8/8! < 5.2e-9
  float p = 1.0F / 5040;
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  return p * bits_to_float(static_cast<std::uint32_t>(power + 127) << 23);
}

inline float dot(const float* a, const float* b, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void rms_norm(const float* x, const float* weight, float epsilon, std::int64_t n, float* out) {
  const float mean_square = dot(x, x, n) / static_cast<float>(n);
  const float inverse = 1.0F / __builtin_sqrtf(mean_square + epsilon);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] * inverse * weight[i];
}

void layer_norm(const float* x, const float* weight, const float* bias, float epsilon, std::int64_t n, float* out) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += x[i];
  const float mean = sum / static_cast<float>(n);
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const float inverse = 1.0F / __builtin_sqrtf(squares / static_cast<float>(n) + epsilon);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * inverse * weight[i] + bias[i];
}

void softmax(float* row, float scale, std::int64_t n) {
  float largest = row[0];
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < n; ++i) largest = row[i] > largest ? row[i] : largest;
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) {
    row[i] = exponential((row[i] - largest) * scale);
    sum += row[i];
  }
  const float inverse = 1.0F / sum;
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) row[i] *= inverse;
}

void attend(const HeadQuery& head, float* scores, float* out) {
  const std::int64_t dim = head.head_dim;
  for (std::int64_t t = 0; t < head.context; ++t) scores[t] = dot(head.query, head.keys + t * dim, dim);
  softmax(scores, head.scale, head.context);
  for (std::int64_t i = 0; i < dim; ++i) out[i] = 0;
  for (std::int64_t t = 0; t < head.context; ++t) {
    const float* value = head.values + t * dim;
    const float weight = scores[t];
#pragma omp simd
    for (std::int64_t i = 0; i < dim; ++i) out[i] += weight * value[i];
  }
}

void rotate(const float* x, const float* cosine, const float* sine, std::int64_t half, float* out) {
#pragma omp simd
  for (std::int64_t i = 0; i < half; ++i) {
    const float first = x[i];
    const float second = x[i + half];
    out[i] = first * cosine[i] - second * sine[i];
    out[i + half] = second * cosine[i] + first * sine[i];
  }
}

void silu_multiply(float* gate, const float* up, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) gate[i] = gate[i] / (1.0F + exponential(-gate[i])) * up[i];
}

// 0.5 x (1 + tanh u) = x / (1 + e^(-2u)) with u = sqrt(2/pi) (x + 0.044715 x^3)
void gelu(float* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float u = 0.7978845608F * (x[i] + 0.044715F * x[i] * x[i] * x[i]);
    x[i] = x[i] / (1.0F + exponential(-2.0F * u));
  }
}

void add(float* y, const float* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] += x[i];
}

// Every bit of the result depends on every bit of the argument; two rounds of multiply and shift.
inline std::uint32_t mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7FEB352DU;
  x ^= x >> 15;
  x *= 0x846CA68BU;
  x ^= x >> 16;
  return x;
}

void fill_random(float* out, std::int64_t first, std::int64_t n, std::uint32_t key, float center, float width) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t bits = mix(static_cast<std::uint32_t>(first + i) ^ key) >> 8;  // 24 bits: exact as float
    const float unit = static_cast<float>(static_cast<std::int32_t>(bits)) * (1.0F / 8388608.0F) - 1.0F;
    out[i] = center + width * unit;
  }
}

}  // namespace

extern const RowKernels LLMPROF_ROW_KERNELS;
const RowKernels LLMPROF_ROW_KERNELS{
    LLMPROF_ROW_KERNELS_NAME, rms_norm, layer_norm, softmax, attend, rotate, silu_multiply, gelu, add, fill_random};

}  // namespace llmprof::workload
