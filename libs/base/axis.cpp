#include "base/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "base/strings.h"

namespace llmprof::base {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

Error usage(std::string message) {
  return {ErrorCode::kUsage, std::move(message), "write values as 1,2,4 or 128..8192:x2 or 0..100:+10"};
}

struct Step {
  bool multiplies = false;
  std::int64_t amount = 1;

  std::optional<std::int64_t> after(std::int64_t value) const {  // nothing beyond 64 bits
    std::int64_t next = 0;
    const bool overflow =
        multiplies ? __builtin_mul_overflow(value, amount, &next) : __builtin_add_overflow(value, amount, &next);
    return overflow ? std::nullopt : std::optional(next);
  }
};

Result<Step> parse_step(std::string_view text) {
  const bool multiplies = text.starts_with('x');
  if (!multiplies && !text.starts_with('+')) return usage(fmt::format("the step '{}' is neither xN nor +N", text));
  LLMPROF_LET(const std::int64_t amount, parse_count(text.substr(1)));
  if (amount < (multiplies ? 2 : 1)) return usage(fmt::format("with the step '{}' a range never ends", text));
  return Step{multiplies, amount};
}

Result<void> add_range(std::string_view text, std::size_t dots, std::vector<std::int64_t>& values) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  if (colon < dots) return usage(fmt::format("'{}' is not a range", text));
  LLMPROF_LET(const std::int64_t first, parse_count(text.substr(0, dots)));
  LLMPROF_LET(const std::int64_t last, parse_count(text.substr(dots + 2, colon - dots - 2)));
  Step step;
  if (colon < text.size()) {
    LLMPROF_LET(step, parse_step(text.substr(colon + 1)));
  }
  if (last < first) return usage(fmt::format("the range '{}' ends before it begins", text));
  if (step.multiplies && first == 0) return usage(fmt::format("the range '{}' multiplies 0", text));
  for (std::optional<std::int64_t> value = first; value && *value <= last; value = step.after(*value)) {
    if (values.size() == kMaxAxisValues) return usage(fmt::format("more than {} values", kMaxAxisValues));
    values.push_back(*value);
  }
  return {};
}

}  // namespace

Result<std::int64_t> parse_count(std::string_view text) {
  const Error error = usage(fmt::format("'{}' is not a whole number such as 8, 128k or 2M", text));
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || value < 0) return error;
  const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const std::int64_t unit = suffix.empty() ? 1 : suffix == "k" || suffix == "K" ? 1024 : suffix == "M" ? 1 << 20 : 0;
  if (unit == 0 || value > kMost / unit) return error;
  return value * unit;
}

Result<std::vector<std::int64_t>> parse_axis_values(std::string_view text) {
  std::vector<std::int64_t> values;
  for (const std::string_view item : split(text, ',')) {
    if (const std::size_t dots = item.find(".."); dots != std::string_view::npos) {
      LLMPROF_TRY(add_range(item, dots, values));
    } else {
      LLMPROF_LET(const std::int64_t value, parse_count(item));
      if (values.size() == kMaxAxisValues) return usage(fmt::format("more than {} values", kMaxAxisValues));
      values.push_back(value);
    }
  }
  return values;
}

Result<Axis> parse_axis(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return Error{ErrorCode::kUsage, fmt::format("'{}' is not NAME=VALUES", text), "for example batch=1..256:x2"};
  }
  Axis axis{.name = std::string(text.substr(0, equals)), .values = {}};
  LLMPROF_LET(axis.values, parse_axis_values(text.substr(equals + 1)));
  return axis;
}

Result<std::vector<Axis>> parse_axes(std::string_view text) {
  std::vector<Axis> axes;
  for (const std::string_view item : split(text, ' ')) {
    if (item.empty()) continue;
    LLMPROF_LET(Axis axis, parse_axis(item));
    if (std::ranges::find(axes, axis.name, &Axis::name) != axes.end())
      return usage(fmt::format("{} is given twice", axis.name));
    axes.push_back(std::move(axis));
  }
  if (axes.empty()) return Error{ErrorCode::kUsage, "a sweep needs NAME=VALUES", "for example batch=1..256:x2"};
  return axes;
}

}  // namespace llmprof::base
