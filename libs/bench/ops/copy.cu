// Bytes from one place in the device's memory to another.

#include "bench/ops/rows.cuh"

namespace llmprof {

template <int kUnroll>
__device__ void copy_whole(const uint4* from, uint4* to) {
  uint4 word[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) word[u] = from[u * blockDim.x + threadIdx.x];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) to[u * blockDim.x + threadIdx.x] = word[u];
}

// The last blocks: whole words, then the bytes that are left.
__device__ void copy_rest(const char* from, char* to, std::int64_t bytes, int unroll) {
  for (int u = 0; u < unroll; ++u) {
    const std::int64_t at = (u * blockDim.x + threadIdx.x) * 16;
    if (at + 16 <= bytes) {
      *reinterpret_cast<uint4*>(to + at) = *reinterpret_cast<const uint4*>(from + at);
    } else {
      for (std::int64_t i = at; i < bytes; ++i) to[i] = from[i];
    }
  }
}

extern "C" {
__global__ void copy_bytes(const char* from, char* to, std::int64_t bytes, int unroll) {
  const std::int64_t share = static_cast<std::int64_t>(blockDim.x) * 16 * unroll, begin = blockIdx.x * share;
  if (begin + share > bytes) {
    copy_rest(from + begin, to + begin, bytes - begin, unroll);
  } else if (unroll == 1) {
    copy_whole<1>(reinterpret_cast<const uint4*>(from + begin), reinterpret_cast<uint4*>(to + begin));
  } else {
    copy_whole<4>(reinterpret_cast<const uint4*>(from + begin), reinterpret_cast<uint4*>(to + begin));
  }
}
}

}  // namespace llmprof
