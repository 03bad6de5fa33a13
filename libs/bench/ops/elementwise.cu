// Value by value through memory: copies, x + residual, gelu exact and by tanh, silu(gate) * up.

#include "bench/ops/activation.cuh"
#include "bench/ops/rows.cuh"

namespace llmprof {

// Bytes from one place in the device's memory to another, 16 per thread: more of them in flight, or hints to the cache,
// were slower on an H200.
extern "C" __global__ void copy_bytes(const char* from, char* to, std::int64_t bytes) {
  const std::int64_t at = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * 16;
  if (at + 16 <= bytes) {
    *reinterpret_cast<uint4*>(to + at) = *reinterpret_cast<const uint4*>(from + at);
  } else {
    for (std::int64_t i = at; i < bytes; ++i) to[i] = from[i];
  }
}

// A row of the input of silu_mul holds gate, then up: one product of gate and up together wrote it so.
template <int kUnroll, int kAccess, class T>
__device__ void silu_mul_part(const T* x, T* y, std::int64_t width, std::int64_t row, std::int64_t begin) {
  const T* gate = x + row * 2 * width + begin;
  stream_block<kUnroll, kAccess, 2, T>({gate, gate + width}, y + row * width + begin, width - begin,
                                       [](const float(&v)[2]) { return silu(v[0]) * v[1]; });
}

// A block computes one of the `parts` of a row, all of the same size.
template <class T>
__device__ void silu_mul(const T* x, T* y, std::int64_t width, int parts, int unroll) {
  constexpr int kPack = Pack<T>::kSize;
  const std::int64_t row = blockIdx.x / parts;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x % parts) * blockDim.x * kPack * unroll;
  if (width % kPack != 0) {
#pragma unroll 4
    for (int i = 0; i < kPack * unroll; ++i) {  // value by value what packs would cover
      silu_mul_part<1, 1>(x, y, width, row, begin + static_cast<std::int64_t>(i) * blockDim.x);
    }
  } else if (unroll == 1) {
    silu_mul_part<1, kPack>(x, y, width, row, begin);
  } else {
    silu_mul_part<4, kPack>(x, y, width, row, begin);
  }
}

#define LLMPROF_ELEMENTWISE(name, T)                                                                               \
  extern "C" __global__ void residual_add_##name(const T* x, const T* residual, T* y, std::int64_t values) {       \
    stream<2, T>({x, residual}, y, values, [](const float(&v)[2]) { return v[0] + v[1]; });                        \
  }                                                                                                                \
  extern "C" __global__ void gelu_##name(const T* x, T* y, std::int64_t values) {                                  \
    stream<1, T>({x}, y, values, [](const float(&v)[1]) { return gelu(v[0]); });                                   \
  }                                                                                                                \
  extern "C" __global__ void gelu_tanh_##name(const T* x, T* y, std::int64_t values) {                             \
    stream<1, T>({x}, y, values, [](const float(&v)[1]) { return gelu_tanh(v[0]); });                              \
  }                                                                                                                \
  extern "C" __global__ void silu_mul_##name(const T* x, T* y, std::int64_t width, int parts, int unroll) {        \
    silu_mul(x, y, width, parts, unroll);                                                                          \
  }
LLMPROF_EACH_TYPE(LLMPROF_ELEMENTWISE)

}  // namespace llmprof
