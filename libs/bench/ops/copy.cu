// Bytes from one place in the device's memory to another, 16 per thread: more of them in flight, or hints to the cache,
// were slower on an H200.

#include <cstdint>

extern "C" __global__ void copy_bytes(const char* from, char* to, std::int64_t bytes) {
  const std::int64_t at = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * 16;
  if (at + 16 <= bytes) {
    *reinterpret_cast<uint4*>(to + at) = *reinterpret_cast<const uint4*>(from + at);
  } else {
    for (std::int64_t i = at; i < bytes; ++i) to[i] = from[i];
  }
}
