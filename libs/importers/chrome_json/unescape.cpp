#include "importers/chrome_json/unescape.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include "importers/text.h"

namespace llmprof::importers::chrome_json {
namespace {

constexpr std::uint32_t kReplacement = 0xFFFD;

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  }
}

// The four digits behind \u at the beginning.
std::optional<std::uint32_t> four_digits(std::string_view text) {
  if (text.size() < 6 || text[0] != '\\' || text[1] != 'u') return std::nullopt;
  std::uint32_t code = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + 6, code, 16);
  if (error != std::errc() || end != text.data() + 6) return std::nullopt;
  return code;
}

// \uXXXX, or two of them that are one character; returns the bytes used, 0 if it is none.
std::size_t append_code(std::string& out, std::string_view text, bool& repaired) {
  const std::optional<std::uint32_t> code = four_digits(text);
  if (!code) return 0;
  if (*code >= 0xD800 && *code < 0xDC00) {
    const std::optional<std::uint32_t> low = four_digits(text.substr(6));
    if (low && *low >= 0xDC00 && *low < 0xE000) {
      append_utf8(out, 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00));
      return 12;
    }
  }
  const bool bad = (*code >= 0xD800 && *code < 0xE000) || *code == 0;
  repaired |= bad;
  append_utf8(out, bad ? kReplacement : *code);
  return 6;
}

// What a letter behind a backslash means; 0: nothing.
char meaning(char letter) {
  switch (letter) {
    case '"':
    case '\\':
    case '/':
      return letter;
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return 0;
  }
}

}  // namespace

std::string unescape(std::string_view written, bool& repaired) {
  std::string out;
  out.reserve(written.size());
  while (!written.empty()) {
    const std::size_t plain = std::min(written.find('\\'), written.size());
    out += written.substr(0, plain);
    written.remove_prefix(plain);
    if (written.empty()) break;
    std::size_t used = 2;
    if (const char letter = written.size() < 2 ? '\0' : meaning(written[1]); letter != 0) {
      out += letter;
    } else if (used = append_code(out, written, repaired); used == 0) {
      out += '\\';  // a path of Windows, most likely
      repaired = true;
      used = 1;
    }
    written.remove_prefix(used);
  }
  if (is_utf8(out)) return out;
  repaired = true;
  return to_utf8(out);
}

}  // namespace llmprof::importers::chrome_json
