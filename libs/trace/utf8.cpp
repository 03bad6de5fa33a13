#include "trace/utf8.h"

#include <cstdint>

namespace llmprof::trace {
namespace {

unsigned char byte_at(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

// Bytes of the character that starts here; 0 if none does. Overlong forms, surrogates and values above U+10FFFF are
// told by the range that the second byte may have.
std::size_t character_bytes(std::string_view text, std::size_t at) {
  const unsigned char first = byte_at(text, at);
  if (first == 0) return 0;
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const std::size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  const unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  const unsigned char second = byte_at(text, at + 1);
  if (second < low || second > high) return 0;
  for (std::size_t i = 2; i < bytes; ++i) {
    if ((byte_at(text, at + i) & 0xC0) != 0x80) return 0;
  }
  return bytes;
}

}  // namespace

std::string storable(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t bytes = character_bytes(text, at); bytes != 0) {
      out.append(text, at, bytes);
      at += bytes;
    } else {
      const unsigned char byte = byte_at(text, at++);
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

}  // namespace llmprof::trace
