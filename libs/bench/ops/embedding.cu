// y[row] = table[ids[row]], in units of 16 bytes or of one value. A thread moves four units a block's width apart: all
// four reads are in flight before the first write.

#include <cstdint>

namespace llmprof {

template <class Unit>
__device__ void embedding(const std::int32_t* ids, const Unit* table, Unit* y, std::int64_t row_units,
                          std::int64_t units) {
  constexpr int kPerThread = 4;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * kPerThread * 256 + threadIdx.x;
  Unit held[kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const std::int64_t at = begin + i * 256;
    if (at >= units) continue;
    // Division of 64-bit numbers costs many instructions, and few problems need it.
    const bool narrow = units <= 0xffffffffll;
    const std::int64_t row =
        narrow ? static_cast<std::uint32_t>(at) / static_cast<std::uint32_t>(row_units) : at / row_units;
    held[i] = table[ids[row] * row_units + (at - row * row_units)];
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    if (begin + i * 256 < units) y[begin + i * 256] = held[i];
  }
}

#define LLMPROF_EMBEDDING(bytes, Unit)                                                                               \
  extern "C" __global__ void embedding_##bytes(const std::int32_t* ids, const Unit* table, Unit* y,                  \
                                               std::int64_t row_units, std::int64_t units) {                         \
    embedding(ids, table, y, row_units, units);                                                                      \
  }
LLMPROF_EMBEDDING(16, uint4)
LLMPROF_EMBEDDING(4, std::uint32_t)
LLMPROF_EMBEDDING(2, std::uint16_t)

}  // namespace llmprof
