// Kernels whose hits in the L2 cache are known by construction: a third witness beside two profilers. Built and run by
// l2_hits.sh. Argument: how often each kernel is launched (8).
//   stream_once  1 GiB, every sector once: no hits
//   twice_cold   8 MiB, two times in one launch, after a flush: every second lookup hits
//   eight_cold   8 MiB, eight times, after a flush: 7 of 8 hit
//   again_warm   8 MiB, once, read by another kernel just before: all hit
// Loads go past L1 (.cg), 16 bytes a thread, so that a warp asks for each of its 16 sectors once. Nothing is written.

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                      \
  do {                                                                                                   \
    const cudaError_t status = (call);                                                                   \
    if (status != cudaSuccess) {                                                                         \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status));    \
      std::exit(1);                                                                                      \
    }                                                                                                    \
  } while (0)

__device__ float load(const float4* at) {
  float4 value;
  asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "l"(at));
  return value.x + value.y + value.z + value.w;
}

// Every pass waits for the one before: its first address depends on the sum, which is never what is compared with.
__device__ void read(const float4* data, std::size_t count, int passes, float* never) {
  const std::size_t first = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x, step = std::size_t{gridDim.x} * blockDim.x;
  float sum = 0;
  for (int pass = 0; pass < passes; ++pass) {
    const std::size_t shift = sum == 12345.f ? 1 : 0;
    for (std::size_t i = first; i < count; i += step) sum += load(data + i + shift);
    __syncthreads();
  }
  if (sum == 54321.f) *never = sum;
}

extern "C" __global__ void stream_once(const float4* data, std::size_t count, float* never) { read(data, count, 1, never); }
extern "C" __global__ void twice_cold(const float4* data, std::size_t count, float* never) { read(data, count, 2, never); }
extern "C" __global__ void eight_cold(const float4* data, std::size_t count, float* never) { read(data, count, 8, never); }
extern "C" __global__ void again_warm(const float4* data, std::size_t count, float* never) { read(data, count, 1, never); }
extern "C" __global__ void warm_up(const float4* data, std::size_t count, float* never) { read(data, count, 4, never); }
extern "C" __global__ void flush(float4* data, std::size_t count, float value) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += std::size_t{gridDim.x} * blockDim.x)
    data[i] = make_float4(value, value, value, value);
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 8;
  constexpr std::size_t kLarge = std::size_t{1} << 30, kSmall = std::size_t{8} << 20, kOthers = std::size_t{256} << 20;
  constexpr std::size_t kEach = sizeof(float4);
  float4 *large, *small, *others;
  float* never;
  CHECK(cudaMalloc(&large, kLarge + kEach));
  CHECK(cudaMalloc(&small, kSmall + kEach));
  CHECK(cudaMalloc(&others, kOthers));
  CHECK(cudaMalloc(&never, sizeof(float)));
  CHECK(cudaMemset(large, 0, kLarge + kEach));
  CHECK(cudaMemset(small, 0, kSmall + kEach));
  int device, multiprocessors;
  CHECK(cudaGetDevice(&device));
  CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  const int blocks = 2 * multiprocessors, threads = 512;
  const auto evict = [&](int round) { flush<<<blocks, threads>>>(others, kOthers / kEach, static_cast<float>(round)); };
  for (int round = 0; round < rounds; ++round) {
    evict(round);
    stream_once<<<blocks, threads>>>(large, kLarge / kEach, never);
    evict(round);
    twice_cold<<<blocks, threads>>>(small, kSmall / kEach, never);
    evict(round);
    eight_cold<<<blocks, threads>>>(small, kSmall / kEach, never);
    evict(round);
    warm_up<<<blocks, threads>>>(small, kSmall / kEach, never);
    again_warm<<<blocks, threads>>>(small, kSmall / kEach, never);
    CHECK(cudaDeviceSynchronize());
  }
  CHECK(cudaGetLastError());
  std::printf("%d rounds\n", rounds);
  return 0;
}
