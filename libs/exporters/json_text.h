#pragma once
// Pieces of JSON for files too large to be built in memory.

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "base/json.h"

namespace llmprof::exporters {

// "text" with everything escaped that JSON wants escaped; a byte that is not UTF-8 becomes U+FFFD.
inline std::string json_quoted(std::string_view text) { return base::to_line(base::Json(text)); }
// Whether it is one JSON value that can be put in as it is.
inline bool is_json(std::string_view text) { return base::Json::accept(text); }

inline void append_number(std::string& out, std::int64_t value) {
  const fmt::format_int text(value);
  out.append(text.data(), text.size());
}
// Nanoseconds as microseconds with three decimals: exact.
inline void append_microseconds(std::string& out, std::int64_t ns) {
  const bool negative = ns < 0;
  const std::uint64_t size = negative ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  if (negative) out += '-';
  const fmt::format_int whole(size / 1000);
  out.append(whole.data(), whole.size());
  const auto rest = static_cast<unsigned>(size % 1000);
  const char digits[] = {'.', static_cast<char>('0' + rest / 100), static_cast<char>('0' + rest / 10 % 10),
                         static_cast<char>('0' + rest % 10)};
  out.append(digits, sizeof digits);
}
// Shortest text that reads back as the same number; null where JSON has none (NaN, infinity).
inline void append_real(std::string& out, double value) {
  if (std::isfinite(value))
    fmt::format_to(std::back_inserter(out), "{}", value);
  else
    out += "null";
}

}  // namespace llmprof::exporters
