#pragma once
// One point of a sweep: an operator, a type, and a value for each of the operator's axes.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/type.h"

namespace llmprof::bench {

struct Problem {
  std::string op;  // "gemm"
  Type type = Type::kFloat32;
  std::vector<std::pair<std::string, std::int64_t>> axes;  // all of the operator's, in its order

  std::int64_t at(std::string_view axis) const;  // an axis of the operator; anything else is a bug
  Problem with(std::string_view axis, std::int64_t value) const;
  std::string sizes() const;  // "m=1 n=4096 k=4096"
  std::string key() const;    // "gemm bfloat16 m=1 n=4096 k=4096": names the point in a run
  bool operator==(const Problem&) const = default;
};

}  // namespace llmprof::bench
