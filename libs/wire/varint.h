#pragma once
// Variable-length integers: 7 bits a byte, low bits first, the top bit says "more follows" (LEB128). A 64-bit value
// takes 1 to 10 bytes. Zigzag folds the sign into bit 0, so that small differences of either sign stay short.

#include <cstddef>
#include <cstdint>

namespace llmprof::wire {

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

}  // namespace llmprof::wire
