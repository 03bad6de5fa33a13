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

RowStatistics statistics(const float* x, float epsilon, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += x[i];
  const float mean = sum / static_cast<float>(n);
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  return {mean, 1.0F / __builtin_sqrtf(squares / static_cast<float>(n) + epsilon)};
}

void layer_norm(const float* x, const float* weight, const float* bias, float epsilon, std::int64_t n, float* out) {
  const RowStatistics row = statistics(x, epsilon, n);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) out[i] = (x[i] - row.mean) * row.inverse * weight[i] + bias[i];
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
  const std::int64_t dim = head.head_dim, step = head.blocks == nullptr ? head.context : head.block_tokens;
  for (std::int64_t begin = 0, block = 0; begin < head.context; begin += step, ++block) {
    const float* const keys = head.keys + (head.blocks == nullptr ? 0 : head.blocks[block] * head.block_stride);
    const std::int64_t end = begin + step < head.context ? begin + step : head.context;
    for (std::int64_t t = begin; t < end; ++t) scores[t] = dot(head.query, keys + (t - begin) * dim, dim);
  }
  softmax(scores, head.scale, head.context);
  for (std::int64_t i = 0; i < dim; ++i) out[i] = 0;
  for (std::int64_t begin = 0, block = 0; begin < head.context; begin += step, ++block) {
    const float* const values = head.values + (head.blocks == nullptr ? 0 : head.blocks[block] * head.block_stride);
    const std::int64_t end = begin + step < head.context ? begin + step : head.context;
    for (std::int64_t t = begin; t < end; ++t) {
      const float* const value = values + (t - begin) * dim;
      const float weight = scores[t];
#pragma omp simd
      for (std::int64_t i = 0; i < dim; ++i) out[i] += weight * value[i];
    }
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

// With h = (x - mean) * inverse and g = dy * weight: dx = inverse * (g - mean(g) - h * mean(g * h)).
RowStatistics layer_norm_backward(const float* x, const float* weight, const float* dy, float epsilon, std::int64_t n,
                                  float* dx) {
  const RowStatistics row = statistics(x, epsilon, n);
  float sum = 0;
  float weighted = 0;
#pragma omp simd reduction(+ : sum, weighted)
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = dy[i] * weight[i];
    sum += g;
    weighted += g * (x[i] - row.mean);
  }
  const float mean_g = sum / static_cast<float>(n);
  const float mean_gh = weighted * row.inverse / static_cast<float>(n);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float h = (x[i] - row.mean) * row.inverse;
    dx[i] += row.inverse * (dy[i] * weight[i] - mean_g - h * mean_gh);
  }
  return row;
}

void layer_norm_gradients(const float* x, const float* dy, RowStatistics row, std::int64_t n, float* dweight,
                          float* dbias) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    dweight[i] += dy[i] * (x[i] - row.mean) * row.inverse;
    dbias[i] += dy[i];
  }
}

// gelu = x s with s = 1 / (1 + e^(-2u)), so gelu' = s + x s (1 - s) 2u'
void gelu_backward(const float* x, float* dy, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float square = x[i] * x[i];
    const float u = 0.7978845608F * x[i] * (1.0F + 0.044715F * square);
    const float twice_slope = 2.0F * 0.7978845608F * (1.0F + 3.0F * 0.044715F * square);
    const float s = 1.0F / (1.0F + exponential(-2.0F * u));
    dy[i] *= s + x[i] * s * (1.0F - s) * twice_slope;
  }
}

void softmax_backward(const float* p, float* dp, float scale, std::int64_t n) {
  const float mean = dot(p, dp, n);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dp[i] = scale * p[i] * (dp[i] - mean);
}

void multiply(float* x, float factor, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
}

void adamw(const AdamWStep& step, const float* gradient, std::int64_t n, float* parameter, float* first,
           float* second) {
  const AdamWStep s = step;  // a copy: the stores below cannot change it, so it stays in registers
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = gradient[i];
    const float m = s.beta1 * first[i] + (1.0F - s.beta1) * g;
    const float v = s.beta2 * second[i] + (1.0F - s.beta2) * g * g;
    first[i] = m;
    second[i] = v;
    const float direction = m * s.correction1 / (__builtin_sqrtf(v * s.correction2) + s.epsilon);
    parameter[i] -= s.learning_rate * (direction + s.weight_decay * parameter[i]);
  }
}

}  // namespace

extern const RowKernels LLMPROF_ROW_KERNELS;
const RowKernels LLMPROF_ROW_KERNELS{LLMPROF_ROW_KERNELS_NAME,
                                     rms_norm,
                                     layer_norm,
                                     softmax,
                                     attend,
                                     rotate,
                                     silu_multiply,
                                     gelu,
                                     add,
                                     fill_random,
                                     layer_norm_backward,
                                     layer_norm_gradients,
                                     gelu_backward,
                                     softmax_backward,
                                     multiply,
                                     adamw};

}  // namespace llmprof::workload
