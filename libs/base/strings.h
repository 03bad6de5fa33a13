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
inline std::string lowercase(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  return result;
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
