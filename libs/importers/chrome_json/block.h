#pragma once
// 64 bytes of JSON at a glance: one bit per byte for each class that finding strings and brackets needs. Splitter and
// parser share it, so that they never disagree about what is inside a string.

#include <bit>
#include <cstdint>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace llmprof::importers::chrome_json {

inline constexpr int kBlockBytes = 64;

struct Block {
  std::uint64_t quote = 0, backslash = 0;
  std::uint64_t open = 0, close = 0;  // { [ and } ]
  std::uint64_t gap = 0;              // what may stand beside a string in any place: white space , :
  std::uint64_t control = 0;          // below the space
  std::uint64_t not_text = 0;         // not ASCII, or NUL
};

#if defined(__SSE2__)
inline Block classify(const char* text) {
  Block block;
  const auto is = [](__m128i bytes, int byte) { return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(static_cast<char>(byte))); };
  const auto at_most = [](__m128i bytes, int byte) {
    return _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(static_cast<char>(byte))), bytes);
  };
  for (int part = 0; part < 4; ++part) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + 16 * part));
    const __m128i folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20));  // [ becomes {, ] becomes }
    const auto put = [part](std::uint64_t& mask, __m128i matches) {
      mask |= std::uint64_t{static_cast<std::uint32_t>(_mm_movemask_epi8(matches))} << (16 * part);
    };
    put(block.quote, is(bytes, '"'));
    put(block.backslash, is(bytes, '\\'));
    put(block.open, is(folded, '{'));
    put(block.close, is(folded, '}'));
    put(block.gap, _mm_or_si128(at_most(bytes, ' '), _mm_or_si128(is(bytes, ','), is(bytes, ':'))));
    put(block.control, at_most(bytes, 0x1F));
    put(block.not_text, _mm_or_si128(bytes, is(bytes, 0)));
  }
  return block;
}
#else
inline Block classify(const char* text) {
  Block block;
  for (int i = 0; i < kBlockBytes; ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    const auto put = [i](std::uint64_t& mask, bool is) { mask |= std::uint64_t{is} << i; };
    put(block.quote, byte == '"');
    put(block.backslash, byte == '\\');
    put(block.open, (byte | 0x20) == '{');
    put(block.close, (byte | 0x20) == '}');
    put(block.gap, byte <= ' ' || byte == ',' || byte == ':');
    put(block.control, byte < 0x20);
    put(block.not_text, byte >= 0x80 || byte == 0);
  }
  return block;
}
#endif

// Where strings are, from one block to the next.
class Strings {
 public:
  struct Marks {
    std::uint64_t quotes;  // those that begin or end a string
    std::uint64_t inside;  // with the quote that begins it, without the one that ends it
  };
  Marks mark(const Block& block) {
    const std::uint64_t quotes = block.quote & ~escaped(block.backslash);
    std::uint64_t inside = quotes;
    for (int shift = 1; shift < kBlockBytes; shift *= 2) inside ^= inside << shift;
    inside ^= inside_;
    inside_ = std::uint64_t{0} - (inside >> 63);
    return {quotes, inside};
  }
  bool inside() const { return inside_ != 0; }

 private:
  // What stands behind a backslash that is not itself behind one.
  std::uint64_t escaped(std::uint64_t backslashes) {
    std::uint64_t result = escape_;
    escape_ = 0;
    backslashes &= ~result;
    while (backslashes != 0) {
      const int at = std::countr_zero(backslashes);
      if (at == 63) {
        escape_ = 1;
        break;
      }
      const std::uint64_t next = std::uint64_t{2} << at;
      result |= next;
      backslashes &= (backslashes - 1) & ~next;
    }
    return result;
  }

  std::uint64_t inside_ = 0, escape_ = 0;
};

}  // namespace llmprof::importers::chrome_json
