#pragma once
// Variable-length integers, checksums and UTF-8: what encoder, decoder and readers are made of.

#include <cstddef>
#include <cstdint>

namespace llmprof::wire {

// Variable-length integers: 7 bits a byte, low bits first, the top bit says "more follows" (LEB128). A 64-bit value
// takes 1 to 10 bytes. Zigzag folds the sign into bit 0, so that small differences of either sign stay short.

inline constexpr std::size_t kMaxVarintBytes = 10;

// Writes `value` at `at`, where kMaxVarintBytes must be free, and returns the end of it.
inline std::uint8_t* put_varint(std::uint8_t* at, std::uint64_t value) {
  while (value >= 0x80) {
    *at++ = static_cast<std::uint8_t>(value | 0x80);
    value >>= 7;
  }
  *at++ = static_cast<std::uint8_t>(value);
  return at;
}

// Writes `value` (below 2^21) in exactly three bytes: for lengths that are known only after what they measure.
inline void put_varint3(std::uint8_t* at, std::uint32_t value) {
  at[0] = static_cast<std::uint8_t>(value | 0x80);
  at[1] = static_cast<std::uint8_t>((value >> 7) | 0x80);
  at[2] = static_cast<std::uint8_t>((value >> 14) & 0x7f);
}

// Reads a value from [at, end) into `value`; returns the byte after it, or nullptr if it is cut off or too long.
inline const std::uint8_t* get_varint(const std::uint8_t* at, const std::uint8_t* end, std::uint64_t* value) {
  if (at != end && *at < 0x80) {  // by far the most common length
    *value = *at;
    return at + 1;
  }
  std::uint64_t result = 0;
  for (unsigned shift = 0; shift < 70 && at != end; shift += 7) {
    const std::uint64_t byte = *at++;
    if (shift == 63 && byte > 1) return nullptr;  // bits beyond the 64th
    result |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      *value = result;
      return at;
    }
  }
  return nullptr;
}

constexpr std::uint64_t zigzag(std::uint64_t difference) { return (difference << 1) ^ (0 - (difference >> 63)); }
constexpr std::uint64_t unzigzag(std::uint64_t folded) { return (folded >> 1) ^ (0 - (folded & 1)); }

// CRC-32C (Castagnoli), as in iSCSI and ext4: check value of "123456789" is 0xE3069283.
// Uses the SSE4.2 instruction where the machine has it, a table elsewhere; both give the same number.

}  // namespace llmprof::wire

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

namespace llmprof::wire {

// Text of other encodings as UTF-8.

// Writes one code point and returns the number of bytes, at most 4. Surrogates are written as they are.
inline std::size_t put_utf8(char* at, std::uint32_t point) {
  if (point < 0x80) {
    at[0] = static_cast<char>(point);
    return 1;
  }
  const std::size_t bytes = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  for (std::size_t i = bytes - 1; i > 0; --i, point >>= 6) at[i] = static_cast<char>(0x80 | (point & 0x3f));
  at[0] = static_cast<char>((0xf00u >> bytes & 0xff) | point);
  return bytes;
}

}  // namespace llmprof::wire
