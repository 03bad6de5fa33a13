#pragma once
// What kernels share: 16-byte accesses, conversion to and from float, and reductions over a block. Kernels compute in float32,
// whatever they store.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

namespace llmprof {

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(__half value) { return __half2float(value); }
__device__ inline float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ inline float to_float(__nv_fp8_e4m3 value) { return static_cast<float>(value); }
__device__ inline float to_float(int8_t value) { return static_cast<float>(value); }

template <class T>
__device__ inline T from_float(float value);
template <>
__device__ inline float from_float<float>(float value) { return value; }
template <>
__device__ inline __half from_float<__half>(float value) { return __float2half_rn(value); }
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float value) { return __float2bfloat16_rn(value); }
template <>
__device__ inline __nv_fp8_e4m3 from_float<__nv_fp8_e4m3>(float value) { return __nv_fp8_e4m3(value); }

// As many values as one 16-byte access moves.
template <class T>
struct alignas(16) Pack {
  static constexpr int kSize = 16 / sizeof(T);
  T at[kSize];
};

// Reads past the end are the caller's business: only whole packs.
template <class T>
__device__ inline Pack<T> load_pack(const T* from) { return *reinterpret_cast<const Pack<T>*>(from); }
template <class T>
__device__ inline void store_pack(T* to, const Pack<T>& pack) { *reinterpret_cast<Pack<T>*>(to) = pack; }

__device__ inline float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}
__device__ inline float warp_max(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

// Of all threads of the block, in all of them. Called by every thread; up to 1024 threads, whole warps.
__device__ inline float block_sum(float value) {
  __shared__ float partial[32];
  const int warps = (blockDim.x + 31) / 32;
  value = warp_sum(value);
  __syncthreads();
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  return warp_sum(static_cast<int>(threadIdx.x % 32) < warps ? partial[threadIdx.x % 32] : 0.0f);
}
__device__ inline float block_max(float value) {
  __shared__ float partial[32];
  const int warps = (blockDim.x + 31) / 32;
  value = warp_max(value);
  __syncthreads();
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  return warp_max(static_cast<int>(threadIdx.x % 32) < warps ? partial[threadIdx.x % 32] : -INFINITY);
}

}  // namespace llmprof
