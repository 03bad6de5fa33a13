#pragma once
// Small searches of a plan, without knowledge of engines: the least count that is enough, the highest load that is
// kept, and the rows that no other row beats.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "base/result.h"

namespace llmprof::predict::plan {

// The least count from `least` to `most` that is enough; nothing: not even `most` is. What is enough stays enough with
// more, which is assumed, not checked. Starts at `guess` and doubles its strides from there, so a good guess costs two
// questions.
Result<std::optional<std::int64_t>> least_count(std::int64_t least, std::int64_t most, std::int64_t guess,
                                                const std::function<Result<bool>(std::int64_t)>& enough);

// The highest load from 1 to `most` that is kept, as a multiple of the load at which it is known to be kept; within
// `tolerance` of it (0.05), from below.
Result<double> highest_load(double most, double tolerance, const std::function<Result<bool>(double)>& kept);

// What a row costs; all are to be small. An unknown one is infinite: it cannot beat a known one.
struct Objectives {
  double cost = kUnknown, energy = kUnknown, latency = kUnknown;
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();
  static double of(const std::optional<double>& value) { return value.value_or(kUnknown); }
  bool operator==(const Objectives&) const = default;
};

// Not worse in anything and better in something.
bool dominates(const Objectives& a, const Objectives& b);
// Places of those that no other dominates, in their order. Of equal ones all are kept.
std::vector<std::size_t> pareto_front(const std::vector<Objectives>& rows);

}  // namespace llmprof::predict::plan
