#pragma once
// CRC-32C (Castagnoli), as in iSCSI and ext4: check value of "123456789" is 0xE3069283.
// Uses the SSE4.2 instruction where the machine has it, a table elsewhere; both give the same number.

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
#endif

namespace llmprof::wire {

struct Crc32cTable {
  std::uint32_t entry[256];
};

constexpr Crc32cTable make_crc32c_table() {
  Crc32cTable table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
    table.entry[byte] = crc;
  }
  return table;
}
inline constexpr Crc32cTable kCrc32cTable = make_crc32c_table();

inline std::uint32_t crc32c_by_table(const void* data, std::size_t size) {
  const auto* at = static_cast<const std::uint8_t*>(data);
  std::uint32_t crc = ~0u;
  for (std::size_t i = 0; i < size; ++i) crc = (crc >> 8) ^ kCrc32cTable.entry[(crc ^ at[i]) & 0xff];
  return ~crc;
}

#if defined(__x86_64__)
[[gnu::target("sse4.2")]] inline std::uint32_t crc32c_by_instruction(const void* data, std::size_t size) {
  const auto* at = static_cast<const std::uint8_t*>(data);
  std::uint64_t crc = 0xffffffffu;
  for (; size >= 8; size -= 8, at += 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, at, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  auto tail = static_cast<std::uint32_t>(crc);
  for (; size > 0; --size, ++at) tail = _mm_crc32_u8(tail, *at);
  return ~tail;
}

inline bool has_crc32c_instruction() {
  // cpuid leaves a virtual machine (microseconds), so ask once. Two threads may both ask: they get the same answer.
  static int known = 0;
  int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (answer == 0) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    answer = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_2) != 0 ? 1 : 2;
    __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
  }
  return answer == 1;
}
#endif

inline std::uint32_t crc32c(const void* data, std::size_t size) {
#if defined(__x86_64__)
  if (has_crc32c_instruction()) return crc32c_by_instruction(data, size);
#endif
  return crc32c_by_table(data, size);
}

}  // namespace llmprof::wire
