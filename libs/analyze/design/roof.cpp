#include "analyze/design/roof.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace llmprof::analyze::design {
namespace {

// What a device runs instead of a type that it has no unit for, nearest first. bfloat16 and float16 do not stand in for
// each other: their ranges differ, so programs widen to float32. Narrow types are widened to a 16-bit one.
struct StandIns {
  std::string_view type;
  std::array<std::string_view, 4> instead;
};
constexpr StandIns kStandIns[] = {
    {"float16", {"float32"}},
    {"bfloat16", {"float32"}},
    {"tf32", {"float32"}},
    {"float8", {"bfloat16", "float16", "float32"}},
    {"float6", {"float8", "bfloat16", "float16", "float32"}},
    {"float4", {"float8", "bfloat16", "float16", "float32"}},
    {"int8", {"bfloat16", "float16", "float32"}},
    {"int4", {"int8", "bfloat16", "float16", "float32"}},
};

const hw::Peak* best_of(const Roof& roof, std::string_view quantity, std::string_view type) {
  const hw::Peak* best = nullptr;
  for (const hw::Peak& peak : roof.peaks) {
    if (peak.quantity != quantity || !(peak.value > 0)) continue;
    if (!type.empty() && peak.type != type) continue;
    if (best == nullptr || (best->source != "measured" && peak.source == "measured")) best = &peak;
  }
  return best;
}

UsedPeak used(const hw::Peak& peak, std::string_view type) {
  return {.type = std::string(type),
          .peak_type = peak.type,
          .per_second = peak.value,
          .source = peak.source,
          .method = peak.method,
          .note = ""};
}

}  // namespace

std::optional<UsedPeak> flops_peak(const Roof& roof, std::string_view type) {
  const std::string_view wanted = hw::peak_type(type);
  if (const hw::Peak* peak = best_of(roof, "flops", wanted)) return used(*peak, type);
  for (const StandIns& row : kStandIns) {
    if (row.type != wanted) continue;
    for (const std::string_view other : row.instead) {
      const hw::Peak* peak = other.empty() ? nullptr : best_of(roof, "flops", other);
      if (peak == nullptr) continue;
      UsedPeak result = used(*peak, type);
      result.note = fmt::format("{} has no peak for {}; it would run as {}", roof.device, type, peak->type);
      return result;
    }
  }
  return std::nullopt;
}

std::optional<UsedPeak> bandwidth_peak(const Roof& roof) {
  const hw::Peak* peak = hw::find_peak(roof.peaks, "bandwidth", hw::kMemoryStream);
  return peak != nullptr ? std::optional(used(*peak, "")) : std::nullopt;
}

std::string_view Floor::bound() const {
  if (!compute_ns || !memory_ns || *compute_ns + *memory_ns <= 0) return "unknown";
  return *compute_ns > *memory_ns ? "compute" : "memory";
}

Floor& Floor::operator+=(const Floor& other) {
  const auto add = [](std::optional<double>& sum, const std::optional<double>& more) {
    sum = sum && more ? std::optional(*sum + *more) : std::nullopt;
  };
  add(compute_ns, other.compute_ns);
  add(memory_ns, other.memory_ns);
  add(ns, other.ns);
  return *this;
}

Ruler::Ruler(const Roof& roof, const std::vector<std::string>& types) : bandwidth_(bandwidth_peak(roof)) {
  for (const std::string& type : types) {
    if (std::optional<UsedPeak> peak = flops_peak(roof, type)) {
      peaks_.push_back(std::move(*peak));
    } else {
      unknown_types_.push_back(type);
    }
  }
}

std::optional<double> Ruler::seconds(std::string_view type, double flops) const {
  if (flops <= 0) return 0.0;
  const auto peak = std::ranges::find(peaks_, type, &UsedPeak::type);
  return peak == peaks_.end() ? std::nullopt : std::optional(flops / peak->per_second);
}

std::optional<double> Ruler::compute_ns(const std::map<std::string, double>& flops_by_type) const {
  double sum = 0;
  for (const auto& [type, flops] : flops_by_type) {
    const std::optional<double> part = seconds(type, flops);
    if (!part) return std::nullopt;
    sum += *part;
  }
  return sum * 1e9;
}

std::optional<double> Ruler::memory_ns(double bytes) const {
  return bandwidth_ ? std::optional(bytes / bandwidth_->per_second * 1e9) : std::nullopt;
}

Floor Ruler::larger(std::optional<double> compute_ns, std::optional<double> memory_ns) const {
  Floor floor{.compute_ns = compute_ns, .memory_ns = memory_ns, .ns = std::nullopt};
  if (compute_ns && memory_ns) floor.ns = std::max(*compute_ns, *memory_ns);
  return floor;
}

Floor Ruler::floor(const model::PassCosts& costs) const {
  return larger(compute_ns(costs.flops_by_type), memory_ns(costs.bytes()));
}

Floor Ruler::floor(const model::OpCost& cost) const {
  const std::optional<double> compute = seconds(cost.arithmetic, cost.flops);
  return larger(compute ? std::optional(*compute * 1e9) : std::nullopt, memory_ns(cost.bytes()));
}

std::optional<double> Ruler::ridge(const model::PassCosts& costs) const {
  const std::optional<double> compute = compute_ns(costs.flops_by_type);
  if (!compute || *compute <= 0 || !bandwidth_) return std::nullopt;
  return costs.flops / (*compute * 1e-9) / bandwidth_->per_second;
}

}  // namespace llmprof::analyze::design
