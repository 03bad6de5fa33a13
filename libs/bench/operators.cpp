#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "base/errors.h"
#include "bench/operator.h"

namespace llmprof::bench {

namespace {

// clang-format off
constexpr std::array kOperators{
    &kGemm, &kGroupedGemm, &kLinear, &kMoe, &kResidualAdd, &kConv2d, &kLstm, &kLayernorm, &kLayernormGelu,
    &kRmsnorm, &kResidualRmsnorm, &kGelu, &kGeluTanh, &kSiluMul, &kSoftmax, &kRope, &kKvWrite,
    &kAttentionPrefill, &kAttentionDecode, &kAttentionMixed, &kMlaDecode, &kCopy, &kDequantize, &kQuantize, &kSampling,
    &kEmbedding};
// clang-format on

// The first value of an axis' own values; they are written by us, so they parse.
std::int64_t first_value(const AxisSpec& axis) {
  const auto values = base::parse_axis_values(axis.fallback);
  return values && !values->empty() ? values->front() : axis.least;
}

std::string axis_names(const Operator& op) {
  std::string names;
  for (const AxisSpec& axis : op.axes) names += fmt::format("{}{}", names.empty() ? "" : ", ", axis.name);
  return names;
}

}  // namespace

std::span<const Operator* const> operators() { return kOperators; }

const Operator* find_operator(std::string_view name) {
  const auto* const found =
      std::find_if(kOperators.begin(), kOperators.end(), [&](const Operator* op) { return op->name == name; });
  return found == kOperators.end() ? nullptr : *found;
}

Result<Problem> make_problem(const Operator& op, Type type,
                             std::span<const std::pair<std::string, std::int64_t>> axes) {
  Problem problem{.op = std::string(op.name), .type = type, .axes = {}};
  for (const AxisSpec& axis : op.axes) problem.axes.emplace_back(axis.name, first_value(axis));
  for (const auto& [axis_name, value] : axes) {
    const std::string& name = axis_name;  // clang 14 captures no structured binding
    const auto spec =
        std::find_if(op.axes.begin(), op.axes.end(), [&](const AxisSpec& axis) { return axis.name == name; });
    if (spec == op.axes.end()) {
      return Error{ErrorCode::kUsage, fmt::format("{} has no axis {}", op.name, name), "it has " + axis_names(op)};
    }
    if (value < spec->least) return usage_error("{}: {} = {} is less than {}", op.name, name, value, spec->least);
    problem = problem.with(name, value);
  }
  if (op.check != nullptr) LLMPROF_TRY(op.check(problem));
  return problem;
}

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

Problem Problem::with_most(std::string_view axis, std::int64_t most) const {
  return with(axis, std::min(at(axis), most));
}

std::string Problem::sizes() const {
  std::string text;
  for (const auto& [name, value] : axes) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

std::string Problem::key() const { return fmt::format("{} {} {}", op, type_name(type), sizes()); }

}  // namespace llmprof::bench
