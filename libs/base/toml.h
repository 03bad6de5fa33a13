#pragma once
// A TOML file, parsed without exceptions. Costs seconds to compile: for .cpp files that read one.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/result.h"

// The parser asserts, or with clang assumes, what malformed files do not hold, and then reports them as it should.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace llmprof::base {

inline Result<toml::table> parse_toml(std::string_view text, const std::string& file) {
  // The parser has no defined way with some letters outside of quotes.
  if (const auto other = std::ranges::find_if(text, [](char c) { return static_cast<signed char>(c) < 0; });
      other != text.end()) {
    const auto line = 1 + std::count(text.begin(), other, '\n');
    return Error{ErrorCode::kCorruptInput, fmt::format("{}: line {}: a letter that is not ASCII", file, line),
                 "* stands for any text in a name"};
  }
  toml::parse_result parsed = toml::parse(text, std::string_view(file));
  if (parsed) return std::move(parsed).table();
  return Error{ErrorCode::kCorruptInput,
               fmt::format("{}: line {}: {}", file, parsed.error().source().begin.line, parsed.error().description()),
               ""};
}

}  // namespace llmprof::base
