#include "bench/problem.h"

#include <fmt/format.h>

#include "base/assert.h"

namespace llmprof::bench {

std::int64_t Problem::at(std::string_view axis) const {
  for (const auto& [name, value] : axes) {
    if (name == axis) return value;
  }
  LLMPROF_ASSERT(false);
  return 0;
}

Problem Problem::with(std::string_view axis, std::int64_t value) const {
  Problem changed = *this;
  for (auto& [name, old] : changed.axes) {
    if (name == axis) old = value;
  }
  return changed;
}

std::string Problem::sizes() const {
  std::string text;
  for (const auto& [name, value] : axes) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

std::string Problem::key() const { return fmt::format("{} {} {}", op, type_name(type), sizes()); }

}  // namespace llmprof::bench
