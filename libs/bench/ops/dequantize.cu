// int8, float8 or int4 times scales; the formulas are in quantize.cpp. A thread makes four packs of 16 bytes, a
// block's width apart: all of their reads are in flight before the first write. Where a pack would span two groups, and
// at odd sizes, it makes pairs (two values, a byte of int4) instead.

#include "bench/cuda/vector.cuh"

namespace llmprof {

// kValues quantised values, as they lie in memory.
template <int kBytes>
struct alignas(kBytes) Bytes {
  std::uint8_t at[kBytes];
};

// The values at 2 * i and 2 * i + 1. Of the pair of a value alone, only the first counts.
struct FromInt8 {
  template <int kValues>
  using Stored = Bytes<kValues>;
  template <class S>
  __device__ static float2 two(const S& stored, int i) {
    return {static_cast<float>(static_cast<std::int8_t>(stored.at[2 * i])),
            static_cast<float>(static_cast<std::int8_t>(stored.at[2 * i + 1]))};
  }
};
struct FromFloat8 {
  template <int kValues>
  using Stored = Bytes<kValues>;
  template <class S>
  __device__ static float2 two(const S& stored, int i) {
    const auto both = static_cast<__nv_fp8x2_storage_t>(stored.at[2 * i] | stored.at[2 * i + 1] << 8);
    return __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(both, __NV_E4M3)));
  }
};
struct FromInt4 {
  template <int kValues>
  using Stored = Bytes<kValues / 2>;
  template <class S>
  __device__ static float2 two(const S& stored, int i) {
    return {static_cast<float>((stored.at[i] & 15) - 8), static_cast<float>((stored.at[i] >> 4) - 8)};
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
    for (int j = 0; j < kPack / 2; ++j) {
      const float2 both = From::two(stored[i], j);
      out.at[2 * j] = from_float<T>(both.x * by[i]);
      out.at[2 * j + 1] = from_float<T>(both.y * by[i]);
    }
    store_pack(y + at * kPack, out);
  }
}

template <class From, class T, class S>
__device__ void dequantize_pairs(const void* q, const S* scale, T* y, std::int64_t size, std::int64_t values) {
  using Stored = typename From::template Stored<2>;
  const auto* bytes = static_cast<const std::uint8_t*>(q);
  for (int i = 0; i < 4; ++i) {
    const std::int64_t at = (static_cast<std::int64_t>(blockIdx.x) * 4 * 256 + i * 256 + threadIdx.x) * 2;
    if (at >= values) return;
    const bool alone = at + 1 == values;  // int4 never is
    Stored stored;
    for (int j = 0; j < static_cast<int>(sizeof(Stored)); ++j) {
      stored.at[j] = alone && j == 1 ? 0 : bytes[at / (2 / sizeof(Stored)) + j];
    }
    const float2 both = From::two(stored, 0);
    y[at] = from_float<T>(both.x * to_float(scale[group_of(at, size, values)]));
    if (!alone) y[at + 1] = from_float<T>(both.y * to_float(scale[group_of(at + 1, size, values)]));
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
