#pragma once
// Text of other encodings as UTF-8.

#include <cstddef>
#include <cstdint>

namespace llmprof::wire {

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
