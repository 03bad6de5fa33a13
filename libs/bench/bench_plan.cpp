#include "bench/bench_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "bench/operator.h"

namespace llmprof::bench {
namespace {

constexpr double kUnknownCacheBytes = 64 << 20;
// 2^57: six bits are left for bytes per value, for gates, for anything an operator multiplies its axes with.
constexpr double kMostProduct = 0x1p57;
constexpr double kCheapMultiplyAdds = 1e8;
constexpr double kCheapValues = 4e6;
constexpr double kEventSeconds = 3e-6;  // seen around an empty kernel, with room

}  // namespace

std::string why_too_large(const Problem& problem) {
  double product = 1;
  for (const auto& [name, value] : problem.axes) product *= std::max(1.0, std::abs(static_cast<double>(value)));
  if (product <= kMostProduct) return "";
  return fmt::format("too large: its axes multiply to {:.3g}, no device holds such tensors", product);
}

Admission admit(const Problem& problem) {
  const Operator* op = find_operator(problem.op);
  if (op == nullptr) return {.why_not = fmt::format("there is no operator {}", problem.op)};
  if (std::string why = why_too_large(problem); !why.empty()) return {.why_not = std::move(why)};
  Result<Problem> made = make_problem(*op, problem.type, problem.axes);
  if (!made) return {.why_not = made.error().message};
  return {.op = op, .problem = std::move(*made)};
}

std::string why_type_unknown(const Operator& op, Type type, std::span<const Type> known, std::string_view where) {
  if (std::find(known.begin(), known.end(), type) != known.end()) return "";
  std::string names;
  for (const Type each : known) names += fmt::format("{}{}", names.empty() ? "" : ", ", type_name(each));
  return fmt::format("{} has no {} on a {}: it has {}", op.name, type_name(type), where, names);
}

Result<std::vector<const CudaImplementation*>> wanted_implementations(const Operator& op, const std::string& name) {
  std::vector<const CudaImplementation*> wanted;
  std::string names;
  for (const CudaImplementation& implementation : op.cuda) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", implementation.name);
    if (name.empty() || implementation.name == name) wanted.push_back(&implementation);
  }
  if (!wanted.empty()) return wanted;
  if (op.cuda.empty()) return Error{ErrorCode::kUnsupported, fmt::format("{} has no GPU implementation", op.name), ""};
  return Error{ErrorCode::kUnsupported,
               fmt::format("{} has no implementation {} on a GPU: it has {}", op.name, name, names), ""};
}

double set_bytes(std::span<const TensorSpec> specs, std::int64_t alignment) {
  double bytes = 0;
  for (const TensorSpec& spec : specs) {
    const auto step = static_cast<double>(alignment);
    const double size = static_cast<double>(spec.elements) * static_cast<double>(type_bytes(spec.type));
    bytes += std::max(1.0, std::ceil(size / step)) * step;
  }
  return bytes;
}

BufferPlan plan_buffers(const BufferNeeds& needs) {
  if (needs.set_bytes > needs.budget_bytes) return {.sets = 0};
  if (needs.cache == Cache::kHot) return {.sets = 1};
  const double wanted_bytes = 2 * (needs.cache_bytes > 0 ? needs.cache_bytes : kUnknownCacheBytes);
  const double touched = std::clamp(needs.touched_bytes, 1.0, needs.set_bytes);
  const double wanted = std::max(2.0, std::floor(wanted_bytes / touched) + 1);
  const double possible =
      std::min(std::floor(needs.budget_bytes / needs.set_bytes), static_cast<double>(needs.most_sets));
  return {.sets = static_cast<std::int64_t>(std::max(1.0, std::min(wanted, possible))), .enough = possible >= wanted};
}

double buffer_budget(double one_set_bytes, double usable_bytes) {
  constexpr double kMostBytes = 1 << 30;
  return std::min(usable_bytes, std::max(one_set_bytes, kMostBytes));
}

std::string why_not_fit(double bytes, double free_bytes, double margin_bytes) {
  return fmt::format("does not fit: its tensors take {}, of {} free memory {} may be used", base::human_bytes(bytes),
                     base::human_bytes(free_bytes), base::human_bytes(std::max(0.0, free_bytes - margin_bytes)));
}

bool cheap_reference(const model::KernelWork& work, std::span<const TensorSpec> specs) {
  double values = 0;
  for (const TensorSpec& spec : specs) values += static_cast<double>(spec.elements);
  return work.flops / 2 <= kCheapMultiplyAdds && values <= kCheapValues;
}

double allowed_error(const Operator& op, const Problem& problem) {
  return op.tolerance.value_or(tolerance(problem.type));
}

std::string why_wrong(const Operator& op, const Problem& checked, double error) {
  const double allowed = allowed_error(op, checked);
  if (error <= allowed) return "";  // false for what is not a number
  if (!std::isfinite(error)) {
    return fmt::format("wrong result: not finite, or not written, where the reference is ({})", checked.sizes());
  }
  return fmt::format("wrong result: relative error {:.2g} against the reference, {:.2g} allowed ({})", error, allowed,
                     checked.sizes());
}

std::string why_type_missing(Type type, std::int64_t capability) {
  struct Least {
    Type type;
    std::int64_t capability;
  };
  constexpr Least kLeast[] = {
      {Type::kFloat16, 53}, {Type::kInt8, 61}, {Type::kTf32, 80}, {Type::kBfloat16, 80}, {Type::kFloat8E4m3, 89}};
  for (const Least& least : kLeast) {
    if (least.type != type || capability >= least.capability) continue;
    return fmt::format("this GPU has no {}: compute capability {}.{}, {}.{} is needed", type_name(type),
                       capability / 10, capability % 10, least.capability / 10, least.capability % 10);
  }
  return "";
}

std::string why_timers_disagree(double kernel_seconds, double event_seconds, std::size_t kernels, double gap_seconds) {
  const double most = 1.1 * (kernel_seconds + static_cast<double>(kernels) * gap_seconds) + kEventSeconds;
  const double least = 0.95 * kernel_seconds - 1e-6;
  if (event_seconds >= least && event_seconds <= most) return "";
  return fmt::format(
      "timers disagree: kernels take {} by CUPTI, the call {} by CUDA events, which launch gaps do not explain",
      base::human_ns(kernel_seconds * 1e9), base::human_ns(event_seconds * 1e9));
}

std::string kernel_list(const std::vector<std::string>& kernels) {
  constexpr int kMostGroups = 10;
  std::string text;
  std::size_t at = 0;
  for (int groups = 0; at < kernels.size() && groups < kMostGroups; ++groups) {
    std::size_t end = at + 1;
    while (end < kernels.size() && kernels[end] == kernels[at]) ++end;
    const std::string times = end - at > 1 ? fmt::format("{} x ", end - at) : "";
    text += fmt::format("{}{}{}", at == 0 ? "" : ", ", times, kernels[at]);
    at = end;
  }
  if (at < kernels.size()) text += fmt::format(", and {} more", kernels.size() - at);
  return text;
}

std::string remarks(const Measurement& measured, double full_clock_mhz) {
  std::string text;
  if (measured.slow_clock) {
    add_remark(text,
               fmt::format("the clock stayed at {:.0f} MHz, {} of the {:.0f} MHz it may reach", measured.clock_mhz,
                           base::human_percent(measured.clock_mhz / full_clock_mhz), full_clock_mhz));
  }
  if (measured.throttled > 0) {
    add_remark(text, fmt::format("{} samples discarded: the clock was throttled", measured.throttled));
  }
  return text;
}

void add_remark(std::string& text, const std::string& more) {
  if (!text.empty() && !more.empty()) text += "; ";
  text += more;
}

}  // namespace llmprof::bench
