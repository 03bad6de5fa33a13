#pragma once
// Numbers and texts of JSON.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace llmprof::importers::chrome_json {

// Numbers of JSON as integers, exactly: a double has no room for 3850981959615.767 microseconds in nanoseconds.
//
// The number times 10^scale, rounded half away from zero. Takes a sign, a fraction and an exponent; nullopt: no number,
// not finite, or beyond int64.
std::optional<std::int64_t> scaled(std::string_view text, int scale);
// An identifier or a size: decimal, or hexadecimal with 0x. Those from 2^63 to 2^64 keep their 64 bits.
std::optional<std::int64_t> integer(std::string_view text);

// Strings of JSON as the text they mean.
//
// The text between the quotes without its escapes, in valid UTF-8. `repaired` is set if it broke the rules of JSON:
// lone surrogates, NUL and bytes that are not UTF-8 become U+FFFD; unknown escapes and control bytes stay as they are.
std::string unescape(std::string_view written, bool& repaired);

}  // namespace llmprof::importers::chrome_json
