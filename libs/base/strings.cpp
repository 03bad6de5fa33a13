#include "base/strings.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace llmprof::base {

namespace {

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string csv_raw(std::string_view text) {
  return text.find_first_of(",\"\r\n") == std::string_view::npos ? std::string(text) : in_quotes(text);
}

std::string csv_text(std::string_view text) {
  if (text.empty()) return "\"\"";  // an empty name is not an unknown one
  const bool formula = std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
  return csv_raw(formula ? "'" + std::string(text) : std::string(text));
}

std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace llmprof::base
