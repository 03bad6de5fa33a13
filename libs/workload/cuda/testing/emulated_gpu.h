#pragma once
// Enough of CUDA's language for our kernels to run on a CPU, for tests: the threads of a block are fibers that take
// turns at every barrier and shuffle. Blocks run one after the other. Included by kernel.cuh where nvcc does not
// compile.

#include <cmath>
#include <cstdint>
#include <cstring>

// NOLINTBEGIN: these names are CUDA's
#define __device__
#define __shared__ static
#define LLMPROF_UNROLL
#define LLMPROF_KERNEL static void
#define LLMPROF_DYNAMIC_SHARED(name) float* const name = llmprof::workload::cuda::emulated_shared()

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct __nv_bfloat16 {
  std::uint16_t bits;
};

inline dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace llmprof::workload::cuda {

float* emulated_shared();
void wait_for_block();
void wait_for_warp();
std::uint64_t exchange_in_warp(std::uint64_t bits, unsigned from_lane);
unsigned lane_now();
int any_in_block(int value);

}  // namespace llmprof::workload::cuda

inline float __uint_as_float(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline float __bfloat162float(__nv_bfloat16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }
inline __nv_bfloat16 __float2bfloat16(float x) {  // to the nearest, the even one of two
  unsigned bits;
  std::memcpy(&bits, &x, sizeof bits);
  return {static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16)};
}

inline void __syncthreads() { llmprof::workload::cuda::wait_for_block(); }
inline void __syncwarp() { llmprof::workload::cuda::wait_for_warp(); }
inline int __syncthreads_or(int value) { return llmprof::workload::cuda::any_in_block(value); }

template <class T>
T __shfl_sync(unsigned /*mask*/, T value, int lane) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = llmprof::workload::cuda::exchange_in_warp(bits, static_cast<unsigned>(lane));
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int offset) {
  return __shfl_sync(mask, value, static_cast<int>(llmprof::workload::cuda::lane_now()) ^ offset);
}
// NOLINTEND
