// Loops that reach a GPU's limits: multiply-adds in registers, streams through memory, reads of the L2 cache and of
// shared memory. What they compute is written only where it could not be otherwise, so that nothing is optimised away.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace llmprof {

// ---- multiply-adds ------------------------------------------------------------------------------------------------

__device__ inline float multiply_add(float x, float a, float b) { return fmaf(x, a, b); }
__device__ inline double multiply_add(double x, double a, double b) { return fma(x, a, b); }
__device__ inline __half2 multiply_add(__half2 x, __half2 a, __half2 b) { return __hfma2(x, a, b); }
__device__ inline float as_float(float x) { return x; }
__device__ inline float as_float(double x) { return static_cast<float>(x); }
__device__ inline float as_float(__half2 x) { return __low2float(x) + __high2float(x); }
template <class T>
__device__ inline T spread(float x) { return static_cast<T>(x); }
template <>
__device__ inline __half2 spread<__half2>(float x) { return __float2half2_rn(x); }
#if __CUDA_ARCH__ >= 800
__device__ inline __nv_bfloat162 multiply_add(__nv_bfloat162 x, __nv_bfloat162 a, __nv_bfloat162 b) {
  return __hfma2(x, a, b);
}
__device__ inline float as_float(__nv_bfloat162 x) { return __low2float(x) + __high2float(x); }
template <>
__device__ inline __nv_bfloat162 spread<__nv_bfloat162>(float x) { return __float2bfloat162_rn(x); }
#endif

// 16 independent chains of 16 multiply-adds a round: 256 for each thread, of each lane of T. Every chain converges to 1,
// as a + b is 1. Both come as T from the host: made from one float here, pairs would be multiplied with broadcasts, which
// only one of the two pipes for them can (half the rate).
template <class T>
__device__ void multiply_adds(float* out, int rounds, T a, T b) {
  constexpr int kChains = 16;
  T chains[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i) chains[i] = spread<T>(static_cast<float>(threadIdx.x + i));
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int step = 0; step < 16; ++step) {
#pragma unroll
      for (int i = 0; i < kChains; ++i) chains[i] = multiply_add(chains[i], a, b);
    }
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kChains; ++i) sum += as_float(chains[i]);
  if (sum == -1.0f) *out = sum;
}

// ---- streams ------------------------------------------------------------------------------------------------------

constexpr int kThreads = 256, kPerThread = 4;  // a block moves 4 x 256 vectors of 16 bytes

__device__ inline std::int64_t first_of_block() {
  return static_cast<std::int64_t>(blockIdx.x) * (kThreads * kPerThread) + threadIdx.x;
}
// Read once: no line of the caches is kept for it.
__device__ inline uint4 load_once(const uint4* from) { return __ldcs(from); }
__device__ inline std::uint32_t folded(uint4 v) { return v.x ^ v.y ^ v.z ^ v.w; }
__device__ inline float plus_half(std::uint32_t a, std::uint32_t b) {
  return fmaf(0.5f, __uint_as_float(b), __uint_as_float(a));
}

extern "C" {

__global__ void roofline_float32_vector(float* out, int rounds, float a, float b) {
  multiply_adds<float>(out, rounds, a, b);
}
__global__ void roofline_float64_vector(float* out, int rounds, double a, double b) {
  multiply_adds<double>(out, rounds, a, b);
}
__global__ void roofline_float16_vector(float* out, int rounds, __half2 a, __half2 b) {
  multiply_adds<__half2>(out, rounds, a, b);
}
__global__ void roofline_bfloat16_vector(float* out, int rounds, __nv_bfloat162 a, __nv_bfloat162 b) {
#if __CUDA_ARCH__ >= 800
  multiply_adds<__nv_bfloat162>(out, rounds, a, b);
#endif
}

// Vectors of 16 bytes; as many as the blocks cover, exactly.
__global__ void roofline_read(const uint4* from, std::uint32_t* out, std::uint32_t never) {
  uint4 v[kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) v[i] = load_once(from + first_of_block() + i * kThreads);
  std::uint32_t fold = 0;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) fold ^= folded(v[i]);
  if (fold == never) *out = fold;  // random data: one thread in four thousand million, and then a write of 4 bytes
}
__global__ void roofline_write(uint4* to, std::uint32_t value) {
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) to[first_of_block() + i * kThreads] = make_uint4(value, value, value, value);
}
__global__ void roofline_copy(uint4* to, const uint4* from) {
  uint4 v[kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) v[i] = load_once(from + first_of_block() + i * kThreads);
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) __stcs(to + first_of_block() + i * kThreads, v[i]);
}
__global__ void roofline_triad(float4* to, const uint4* a, const uint4* b) {
  uint4 x[kPerThread], y[kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) x[i] = load_once(a + first_of_block() + i * kThreads);
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) y[i] = load_once(b + first_of_block() + i * kThreads);
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    __stcs(to + first_of_block() + i * kThreads, make_float4(plus_half(x[i].x, y[i].x), plus_half(x[i].y, y[i].y),
                                                             plus_half(x[i].z, y[i].z), plus_half(x[i].w, y[i].w)));
  }
}

// All blocks together read `vectors` (a multiple of 4 times all threads) `passes` times, past the first-level caches.
// A line is read by another multiprocessor in each pass.
__global__ void roofline_l2_read(const uint4* from, std::int64_t vectors, int passes, std::uint32_t* out,
                                 std::uint32_t never) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::uint32_t fold = 0;
  for (int pass = 0; pass < passes; ++pass) {
    const std::int64_t block = (blockIdx.x + static_cast<std::int64_t>(pass) * 7) % gridDim.x;
    for (std::int64_t i = block * blockDim.x + threadIdx.x; i < vectors; i += 4 * threads) {
      uint4 v[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) v[j] = __ldcg(from + i + j * threads);
#pragma unroll
      for (int j = 0; j < 4; ++j) fold ^= folded(v[j]);
    }
  }
  if (fold == never) *out = fold;
}

// Each thread reads 16 bytes of shared memory, 16 times a round; a warp reads 512 bytes in a row, without conflicts.
__global__ void roofline_shared_read(std::uint32_t* out, int rounds, std::uint32_t never) {
  constexpr int kVectors = 1024;
  __shared__ uint4 data[kVectors];
  for (int i = threadIdx.x; i < kVectors; i += blockDim.x) data[i] = make_uint4(i, i * 7, i * 31, i * 127);
  __syncthreads();
  const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(data));
  std::uint32_t fold = 0;
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      uint4 v;
      const std::uint32_t at = base + ((threadIdx.x + i * 32) % kVectors) * 16;
      asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                   : "r"(at));
      fold ^= v.x;
    }
  }
  if (fold == never) *out = fold;
}

}  // extern "C"

}  // namespace llmprof
