#pragma once
// Numbers of JSON as integers, exactly: a double has no room for 3850981959615.767 microseconds in nanoseconds.

#include <cstdint>
#include <optional>
#include <string_view>

namespace llmprof::importers::chrome_json {

// The number times 10^scale, rounded half away from zero. Takes a sign, a fraction and an exponent; nullopt: no number,
// not finite, or beyond int64.
std::optional<std::int64_t> scaled(std::string_view text, int scale);
// An identifier or a size: decimal, or hexadecimal with 0x. Those from 2^63 to 2^64 keep their 64 bits.
std::optional<std::int64_t> integer(std::string_view text);

}  // namespace llmprof::importers::chrome_json
