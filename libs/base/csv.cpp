#include "base/csv.h"

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

}  // namespace llmprof::base
