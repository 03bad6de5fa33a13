// Rows or groups of values to int8 or float8, with their scales; the formula is in quantize.cpp. A value is read once:
// it stays in registers between finding the largest and dividing by it, but for groups too long for a block's
// registers.

#include "bench/ops/rows.cuh"

namespace llmprof {

// Products as they are rounded to float32, kept from being fused with what follows.
struct ToInt8 {
  static constexpr float kMost = 127.0f;
  // Adding 1.5 * 2^23 leaves the whole number, rounded to even, in the lowest bits. No value here is beyond 127.
  __device__ static std::uint8_t of(float value) {
    return static_cast<std::uint8_t>(__float_as_uint(__fadd_rn(value, 0x1.8p23f)));
  }
  __device__ static std::uint16_t two(float a, float b) {
    return static_cast<std::uint16_t>(
        __byte_perm(__float_as_uint(__fadd_rn(a, 0x1.8p23f)), __float_as_uint(__fadd_rn(b, 0x1.8p23f)), 0x0040));
  }
};
struct ToFloat8 {
  static constexpr float kMost = 448.0f;
  __device__ static std::uint8_t of(float value) { return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3); }
  __device__ static std::uint16_t two(float a, float b) {
    return __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, __NV_E4M3);
  }
};

template <int kSize>
struct alignas(kSize) Bytes {
  std::uint16_t at[kSize / 2];
};

template <class T>
constexpr int kPack = 16 / sizeof(T);  // values of an access of 16 bytes
template <class T>
using Held = Piece<T, kPack<T>>;

template <class T>
__device__ inline float largest(const Held<T>& held) {
  float values[kPack<T>], most = 0;
  held.get(values);
#pragma unroll
  for (int i = 0; i < kPack<T>; ++i) most = fmaxf(most, fabsf(values[i]));
  return most;
}

template <class To, class T>
__device__ inline void store(const Held<T>& held, float inverse, std::uint8_t* q) {
  float values[kPack<T>];
  held.get(values);
  Bytes<kPack<T>> out;
#pragma unroll
  for (int i = 0; i < kPack<T> / 2; ++i) {
    out.at[i] = To::two(__fmul_rn(values[2 * i], inverse), __fmul_rn(values[2 * i + 1], inverse));
  }
  *reinterpret_cast<Bytes<kPack<T>>*>(q) = out;
}

// A group per size / pack lanes (a power of two, 32 at most). Four packs per thread, a block's width apart.
template <class T, class To>
__device__ void quantize_lanes(const T* x, std::uint8_t* q, float* scale, std::int64_t size, std::int64_t groups) {
  constexpr int kPerThread = 4;
  const int lanes = static_cast<int>(size / kPack<T>), shift = __ffs(lanes) - 1;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * kPerThread * 256 + threadIdx.x;
  const std::int64_t packs = groups << shift;
  Held<T> held[kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    if (begin + i * 256 < packs) held[i] = load_piece<kPack<T>>(x + (begin + i * 256) * kPack<T>);
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const std::int64_t at = begin + i * 256;
    float most = at < packs ? largest<T>(held[i]) : 0.0f;
    for (int offset = lanes / 2; offset > 0; offset /= 2)
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, offset));
    most = fmaxf(most, 1e-12f);
    if (at >= packs) continue;
    store<To, T>(held[i], To::kMost / most, q + at * kPack<T>);
    if ((at & (lanes - 1)) == 0) scale[at >> shift] = most / To::kMost;
  }
}

// A group per block.
template <class T, class To>
__device__ void quantize_block(const T* x, std::uint8_t* q, float* scale, std::int64_t size) {
  constexpr int kHeld = 4;
  const int stride = static_cast<int>(blockDim.x) * kPack<T>;
  x += blockIdx.x * size;
  q += blockIdx.x * size;
  const bool aligned = size % kPack<T> == 0;
  const std::int64_t begin = static_cast<std::int64_t>(threadIdx.x) * kPack<T>;
  const std::int64_t kept = aligned ? min(size, static_cast<std::int64_t>(kHeld) * stride) : 0;
  Held<T> held[kHeld];
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    if (begin + i * stride < kept) held[i] = load_piece<kPack<T>>(x + begin + i * stride);
  }
  float most = 1e-12f;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    if (begin + i * stride < kept) most = fmaxf(most, largest<T>(held[i]));
  }
  for (std::int64_t i = kept + threadIdx.x; i < size; i += blockDim.x) most = fmaxf(most, fabsf(to_float(x[i])));
  most = block_max(most);
  const float inverse = To::kMost / most;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    if (begin + i * stride < kept) store<To, T>(held[i], inverse, q + begin + i * stride);
  }
  for (std::int64_t i = kept + threadIdx.x; i < size; i += blockDim.x)
    q[i] = To::of(__fmul_rn(to_float(x[i]), inverse));
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
