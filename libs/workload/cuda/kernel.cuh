#pragma once
// What the kernels share. nvcc compiles them for GPUs; for tests the C++ compiler does, and testing/emulated_gpu.h plays
// the GPU. Numbers are computed in float32 whatever they are stored in.

#ifdef __CUDACC__
#include <cuda_bf16.h>

#include <cstdint>

#define LLMPROF_UNROLL _Pragma("unroll")
#define LLMPROF_KERNEL extern "C" __global__ void
#define LLMPROF_DYNAMIC_SHARED(name) extern __shared__ float4 llmprof_shared[]; \
  float* const name = reinterpret_cast<float*>(llmprof_shared)
#else
#include "workload/cuda/testing/emulated_gpu.h"
#endif

namespace {

using Size = std::int64_t;  // every size that a kernel is given
using Bf16 = __nv_bfloat16;

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(Bf16 x) { return __bfloat162float(x); }
__device__ inline void store(float* to, float x) { *to = x; }
__device__ inline void store(Bf16* to, float x) { *to = __float2bfloat16(x); }

// Eight consecutive values from an address that is a multiple of 16 bytes.
__device__ inline void load8(const float* from, float* to) {
  const float4 low = *reinterpret_cast<const float4*>(from), high = *reinterpret_cast<const float4*>(from + 4);
  to[0] = low.x, to[1] = low.y, to[2] = low.z, to[3] = low.w;
  to[4] = high.x, to[5] = high.y, to[6] = high.z, to[7] = high.w;
}
__device__ inline void load8(const Bf16* from, float* to) {
  const uint4 raw = *reinterpret_cast<const uint4*>(from);
  const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
  for (int i = 0; i < 4; ++i) {  // a bfloat16 is the upper half of a float
    to[2 * i] = __uint_as_float(words[i] << 16);
    to[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000U);
  }
}

constexpr unsigned kAllLanes = 0xFFFFFFFFU;
constexpr int kLanes = 32;

__device__ inline float warp_sum(float x) {
  for (int offset = kLanes / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(kAllLanes, x, offset);
  return x;
}
__device__ inline float warp_max(float x) {
  for (int offset = kLanes / 2; offset > 0; offset /= 2) x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, offset));
  return x;
}

// Of a block of whole warps, the same in every thread. `none` is what does not change the result.
template <class Reduce>
__device__ inline float block_reduce(float x, float none, Reduce reduce) {
  __shared__ float parts[kLanes];
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  x = reduce(x);
  __syncthreads();  // the parts of a call before may still be read
  if (lane == 0) parts[warp] = x;
  __syncthreads();
  return reduce(lane < static_cast<int>(blockDim.x) / kLanes ? parts[lane] : none);
}
__device__ inline float block_sum(float x) { return block_reduce(x, 0.0F, warp_sum); }
__device__ inline float block_max(float x) { return block_reduce(x, -INFINITY, warp_max); }

// Where this thread begins in a loop over all elements, and how far it steps.
__device__ inline Size first_element() { return static_cast<Size>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline Size element_step() { return static_cast<Size>(gridDim.x) * blockDim.x; }

struct RowMoments {
  float mean, inverse;  // inverse: 1 / sqrt(variance + epsilon)
};

template <class T>
__device__ RowMoments row_moments(const T* x, float epsilon, Size n) {
  float sum = 0;
  for (Size i = threadIdx.x; i < n; i += blockDim.x) sum += to_float(x[i]);
  const float mean = block_sum(sum) / static_cast<float>(n);
  float squares = 0;
  for (Size i = threadIdx.x; i < n; i += blockDim.x) {
    const float distance = to_float(x[i]) - mean;
    squares += distance * distance;
  }
  return {mean, 1.0F / sqrtf(block_sum(squares) / static_cast<float>(n) + epsilon)};
}

__device__ inline float gelu_of(float x) {  // the tanh form: x / (1 + e^(-2u))
  const float u = 0.7978845608F * (x + 0.044715F * x * x * x);
  return x / (1.0F + expf(-2.0F * u));
}

}  // namespace
