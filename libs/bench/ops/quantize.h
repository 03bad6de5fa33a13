#pragma once
// What quantize and dequantize share: rows of batch * seq tokens of `hidden` values, one scale per token or per group
// of consecutive values of it.

#include <string_view>

#include "bench/ops/rows.h"

namespace llmprof::bench {

// The axis `format`.
enum class Format : std::uint8_t { kInt8 = 0, kFloat8 = 1, kInt4 = 2 };

inline Format format_of(const Problem& problem) { return static_cast<Format>(problem.at("format")); }

inline std::string_view format_name(Format format) {
  if (format == Format::kInt4) return "int4";
  return type_name(format == Format::kInt8 ? Type::kInt8 : Type::kFloat8E4m3);
}

// int4: two values per byte, so that a tensor of them has half as many bytes as values.
inline Type stored_type(Format format) { return format == Format::kFloat8 ? Type::kFloat8E4m3 : Type::kInt8; }

// Values that share a scale.
inline std::int64_t group_size(const Problem& problem) {
  return problem.at("group") == 0 ? problem.at("hidden") : problem.at("group");
}

inline std::int64_t group_count(const Problem& problem) {
  return row_count(problem) * (problem.at("hidden") / group_size(problem));
}

inline Result<void> check_groups(const Problem& problem, Format last) {
  if (problem.at("format") > static_cast<std::int64_t>(last)) {
    return Error{ErrorCode::kUsage, fmt::format("{}: there is no format {}", problem.op, problem.at("format")),
                 fmt::format("the last is {}, {}", static_cast<int>(last), format_name(last))};
  }
  if (problem.at("hidden") % group_size(problem) != 0) {
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: groups of {} do not divide hidden = {}", problem.op, problem.at("group"),
                             problem.at("hidden")),
                 "0 means one scale per token"};
  }
  return check_values(problem, axis(problem, "batch") * axis(problem, "seq") * axis(problem, "hidden"));
}

}  // namespace llmprof::bench
