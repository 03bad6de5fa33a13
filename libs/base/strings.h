#pragma once
// Small things that are done to text everywhere.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace llmprof::base {

// Without the white space around it.
inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\v\f";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// The parts between separators; empty ones are kept.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// The last component of a path.
inline std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// ASCII only, whatever the locale.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_space(char c) { return static_cast<unsigned char>(c) <= ' '; }  // and control bytes
constexpr char lowercase(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }
inline std::string lowercase(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = lowercase(c);
  return result;
}

// Bytes of the UTF-8 character that a text begins with; 0: it begins with none, or with NUL, which no store of texts
// takes. Overlong forms, surrogates and values above U+10FFFF are told by the range that the second byte may have.
inline std::size_t utf8_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0);
  if (first == 0) return 0;
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const std::size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return bytes;
}

// Cells of comma-separated values (RFC 4180).

// A name may begin like a formula; spreadsheets would run it, so such text is marked with a quote.
std::string csv_text(std::string_view text);
// As it is, quoted where the separator asks for it: numbers, and "" for what is not there.
std::string csv_raw(std::string_view text);

// Insertions, deletions and replacements of a character that turn `a` into `b`: how far a typed name is from a known
// one.
std::size_t edits(std::string_view a, std::string_view b);

}  // namespace llmprof::base
