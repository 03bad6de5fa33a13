// Rows or groups of values to int8 or float8, with their scales; the formula is in quantize.cpp. A value is read once:
// it stays in registers between finding the largest and dividing by it, but for groups too long for a block's
// registers.

#include "bench/cuda/vector.cuh"

namespace llmprof {

struct ToInt8 {
  static constexpr float kMost = 127.0f;
  __device__ static std::uint8_t of(float value) {
    return static_cast<std::uint8_t>(min(max(__float2int_rn(value), -128), 127));
  }
};
struct ToFloat8 {
  static constexpr float kMost = 448.0f;
  __device__ static std::uint8_t of(float value) { return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3); }
};

template <int kSize>
struct alignas(kSize) Bytes {
  std::uint8_t at[kSize];
};

template <class T>
__device__ inline float largest(const Pack<T>& pack) {
  float most = 0;
#pragma unroll
  for (int i = 0; i < Pack<T>::kSize; ++i) most = fmaxf(most, fabsf(to_float(pack.at[i])));
  return most;
}

template <class To, class T>
__device__ inline void store(const Pack<T>& pack, float inverse, std::uint8_t* q) {
  Bytes<Pack<T>::kSize> out;
#pragma unroll
  for (int i = 0; i < Pack<T>::kSize; ++i) out.at[i] = To::of(to_float(pack.at[i]) * inverse);
  *reinterpret_cast<Bytes<Pack<T>::kSize>*>(q) = out;
}

// A group per size / pack lanes (a power of two, 32 at most). Four packs per thread, a block's width apart.
template <class T, class To>
__device__ void quantize_lanes(const T* x, std::uint8_t* q, float* scale, std::int64_t size, std::int64_t groups) {
  constexpr int kPack = Pack<T>::kSize, kPerThread = 4;
  const int lanes = static_cast<int>(size / kPack), shift = __ffs(lanes) - 1;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * kPerThread * 256 + threadIdx.x;
  const std::int64_t packs = groups << shift;
  Pack<T> held[kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    if (begin + i * 256 < packs) held[i] = load_pack(x + (begin + i * 256) * kPack);
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const std::int64_t at = begin + i * 256;
    float most = at < packs ? largest(held[i]) : 0.0f;
    for (int offset = lanes / 2; offset > 0; offset /= 2)
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, offset));
    most = fmaxf(most, 1e-12f);
    if (at >= packs) continue;
    store<To>(held[i], To::kMost / most, q + at * kPack);
    if ((at & (lanes - 1)) == 0) scale[at >> shift] = most / To::kMost;
  }
}

// A group per block of 256 threads.
template <class T, class To>
__device__ void quantize_block(const T* x, std::uint8_t* q, float* scale, std::int64_t size) {
  constexpr int kPack = Pack<T>::kSize, kHeld = 4, kStride = 256 * kPack;
  x += blockIdx.x * size;
  q += blockIdx.x * size;
  const bool aligned = size % kPack == 0;
  const std::int64_t begin = static_cast<std::int64_t>(threadIdx.x) * kPack;
  const std::int64_t kept = aligned ? min(size, static_cast<std::int64_t>(kHeld) * kStride) : 0;
  Pack<T> held[kHeld];
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    if (begin + i * kStride < kept) held[i] = load_pack(x + begin + i * kStride);
  }
  float most = 1e-12f;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    if (begin + i * kStride < kept) most = fmaxf(most, largest(held[i]));
  }
  for (std::int64_t i = kept + threadIdx.x; i < size; i += 256) most = fmaxf(most, fabsf(to_float(x[i])));
  most = block_max(most);
  const float inverse = To::kMost / most;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    if (begin + i * kStride < kept) store<To>(held[i], inverse, q + begin + i * kStride);
  }
  for (std::int64_t i = kept + threadIdx.x; i < size; i += 256) q[i] = To::of(to_float(x[i]) * inverse);
  if (threadIdx.x == 0) scale[blockIdx.x] = most / To::kMost;
}

#define LLMPROF_QUANTIZE(name, T, To)                                                                            \
  extern "C" __global__ void quantize_lanes_##name(const T* x, std::uint8_t* q, float* scale, std::int64_t size, \
                                                   std::int64_t groups) {                                        \
    quantize_lanes<T, To>(x, q, scale, size, groups);                                                            \
  }                                                                                                              \
  extern "C" __global__ void quantize_block_##name(const T* x, std::uint8_t* q, float* scale, std::int64_t size, \
                                                   std::int64_t) {                                               \
    quantize_block<T, To>(x, q, scale, size);                                                                    \
  }

LLMPROF_QUANTIZE(float32_int8, float, ToInt8)
LLMPROF_QUANTIZE(float16_int8, __half, ToInt8)
LLMPROF_QUANTIZE(bfloat16_int8, __nv_bfloat16, ToInt8)
LLMPROF_QUANTIZE(float32_float8_e4m3, float, ToFloat8)
LLMPROF_QUANTIZE(float16_float8_e4m3, __half, ToFloat8)
LLMPROF_QUANTIZE(bfloat16_float8_e4m3, __nv_bfloat16, ToFloat8)

}  // namespace llmprof
