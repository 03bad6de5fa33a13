#pragma once
// Axes are what a user typed: sizes are formed in float64 and held against this before anything multiplies them in
// int64.

#include <fmt/format.h>

#include "base/result.h"
#include "bench/problem.h"

namespace llmprof::bench {

inline constexpr double kMostValues = 0x1p48;  // of one tensor: a petabyte of float32

inline double axis(const Problem& problem, std::string_view name) { return static_cast<double>(problem.at(name)); }

// `values` are those of the problem's largest tensor.
inline Result<void> check_values(const Problem& problem, double values) {
  if (values <= kMostValues) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("{}: {} makes a tensor of {:.3g} values", problem.op, problem.sizes(), values),
               fmt::format("at most {:.3g} are counted, let alone stored", kMostValues)};
}

}  // namespace llmprof::bench
