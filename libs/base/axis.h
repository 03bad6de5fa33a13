#pragma once
// The values of a sweep as the user types them: "batch=1,2,4..256:x2". A value is a whole number, with k = 1024 or
// M = 1024 * 1024 behind it, as sizes of contexts are spoken of. A range names its step: ":x2" multiplies, ":+10"
// adds, nothing counts by one. Both ends belong to it; the last is left out where the steps do not meet it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace llmprof::base {

inline constexpr std::size_t kMaxAxisValues = 100'000;

struct Axis {
  std::string name;
  std::vector<std::int64_t> values;  // at least one, in the order given
};

Result<std::int64_t> parse_count(std::string_view text);                     // "8", "128k", "2M"
Result<std::vector<std::int64_t>> parse_axis_values(std::string_view text);  // "1,2,4", "128..8192:x2", "0..100:+10"
Result<Axis> parse_axis(std::string_view text);                              // "context=1k..128k:x2"
// Several, with spaces between; each name once.
Result<std::vector<Axis>> parse_axes(std::string_view text);

}  // namespace llmprof::base
