#pragma once
// Numbers in text.

#include <charconv>
#include <optional>
#include <string_view>

namespace llmprof::base {

// The number that a text begins with; `rest` is what stands behind it. nullopt: it begins with none, or one that does
// not fit.
template <class Number>
std::optional<Number> leading_number(std::string_view text, std::string_view& rest) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return value;
}
// The same, whatever stands behind it.
template <class Number>
std::optional<Number> leading_number(std::string_view text) {
  return leading_number<Number>(text, text);
}
// The whole text as a number.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  std::string_view rest;
  const std::optional<Number> value = leading_number<Number>(text, rest);
  return rest.empty() ? value : std::nullopt;
}

}  // namespace llmprof::base
