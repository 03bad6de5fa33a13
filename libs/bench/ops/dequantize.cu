// int8, float8 or int4 times scales; the formulas are in dequantize.cpp. A thread makes four packs of 16 bytes, a
// block's width apart: all of their reads are in flight before the first write. Where a pack would span two groups, and
// at odd sizes, it makes pairs (two values, a byte of int4) instead.

#include "bench/cuda/vector.cuh"

namespace llmprof {

// kValues quantised values, as they lie in memory.
template <int kBytes>
struct alignas(kBytes) Bytes {
  std::uint8_t at[kBytes];
};

struct FromInt8 {
  template <int kValues>
  using Stored = Bytes<kValues>;
  template <class S>
  __device__ static float at(const S& stored, int i) {
    return static_cast<float>(static_cast<std::int8_t>(stored.at[i]));
  }
};
struct FromFloat8 {
  template <int kValues>
  using Stored = Bytes<kValues>;
  template <class S>
  __device__ static float at(const S& stored, int i) {
    const __half_raw half = __nv_cvt_fp8_to_halfraw(stored.at[i], __NV_E4M3);
    return __half2float(__half(half));
  }
};
struct FromInt4 {
  template <int kValues>
  using Stored = Bytes<kValues / 2>;
  template <class S>
  __device__ static float at(const S& stored, int i) {
    return static_cast<float>((stored.at[i / 2] >> (i % 2 * 4) & 15) - 8);
  }
};

// The group of a value. Division of 64-bit numbers costs many instructions, and few problems need it.
__device__ inline std::int64_t group_of(std::int64_t at, std::int64_t size, std::int64_t values) {
  return values <= 0xffffffffll ? static_cast<std::uint32_t>(at) / static_cast<std::uint32_t>(size) : at / size;
}

template <class From, class T, class S>
__device__ void dequantize_packs(const void* q, const S* scale, T* y, std::int64_t size, std::int64_t values) {
  constexpr int kPack = Pack<T>::kSize, kPerThread = 4;
  using Stored = typename From::template Stored<kPack>;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * kPerThread * 256 + threadIdx.x,
                     packs = values / kPack;
  Stored stored[kPerThread];
  float by[kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const std::int64_t at = begin + i * 256;
    if (at >= packs) continue;
    stored[i] = static_cast<const Stored*>(q)[at];
    by[i] = to_float(scale[group_of(at * kPack, size, values)]);
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const std::int64_t at = begin + i * 256;
    if (at >= packs) continue;
    Pack<T> out;
#pragma unroll
    for (int j = 0; j < kPack; ++j) out.at[j] = from_float<T>(From::at(stored[i], j) * by[i]);
    store_pack(y + at * kPack, out);
  }
}

template <class From, class T, class S>
__device__ void dequantize_pairs(const void* q, const S* scale, T* y, std::int64_t size, std::int64_t values) {
  // Only int4 stores two values in one byte; the others may end after the first of a pair.
  using Stored = typename From::template Stored<2>;
  constexpr int kPerStored = sizeof(Stored) == 1 ? 2 : 1;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t at = (static_cast<std::int64_t>(blockIdx.x) * 4 * 256 + i * 256 + threadIdx.x) * 2;
    for (int j = 0; j < 2 && at + j < values; ++j) {
      const auto* bytes = static_cast<const std::uint8_t*>(q) + (at + j) / kPerStored;
      const Bytes<1> stored{{*bytes}};
      const float value = From::at(stored, kPerStored == 2 ? j : 0);
      y[at + j] = from_float<T>(value * to_float(scale[group_of(at + j, size, values)]));
    }
  }
}

#define LLMPROF_DEQUANTIZE(name, From, T, S)                                                                 \
  extern "C" __global__ void dequantize_packs_##name(const void* q, const S* scale, T* y, std::int64_t size, \
                                                     std::int64_t values) {                                  \
    dequantize_packs<From>(q, scale, y, size, values);                                                       \
  }                                                                                                          \
  extern "C" __global__ void dequantize_pairs_##name(const void* q, const S* scale, T* y, std::int64_t size, \
                                                     std::int64_t values) {                                  \
    dequantize_pairs<From>(q, scale, y, size, values);                                                       \
  }

LLMPROF_DEQUANTIZE(float32_int8, FromInt8, float, float)
LLMPROF_DEQUANTIZE(float16_int8, FromInt8, __half, float)
LLMPROF_DEQUANTIZE(bfloat16_int8, FromInt8, __nv_bfloat16, float)
LLMPROF_DEQUANTIZE(float32_float8_e4m3, FromFloat8, float, float)
LLMPROF_DEQUANTIZE(float16_float8_e4m3, FromFloat8, __half, float)
LLMPROF_DEQUANTIZE(bfloat16_float8_e4m3, FromFloat8, __nv_bfloat16, float)
LLMPROF_DEQUANTIZE(float32_int4, FromInt4, float, float)
LLMPROF_DEQUANTIZE(float16_int4, FromInt4, __half, __half)
LLMPROF_DEQUANTIZE(bfloat16_int4, FromInt4, __nv_bfloat16, __nv_bfloat16)

}  // namespace llmprof
