#include "hw/roof.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace llmprof::hw {
namespace {

// Formats that hardware multiplies at the same rate.
constexpr std::pair<std::string_view, std::string_view> kSameRate[] = {
    {"float8_e4m3", "float8"}, {"float8_e5m2", "float8"}, {"mxfp8", "float8"}, {"mxfp6", "float6"},
    {"float4_e2m1", "float4"}, {"mxfp4", "float4"},       {"nvfp4", "float4"}};

// What a device runs instead of a type that it has no unit for, nearest first. bfloat16 and float16 do not replace each
// other: their ranges differ, so programs widen to float32. Narrow types are widened to a 16-bit one.
struct Replacements {
  std::string_view type;
  std::vector<std::string_view> instead;
};
const std::vector<Replacements>& replacements() {
  static const std::vector<Replacements> table{
      {"float16", {"float32"}},
      {"bfloat16", {"float32"}},
      {"tf32", {"float32"}},
      {"float8", {"bfloat16", "float16", "float32"}},
      {"float6", {"float8", "bfloat16", "float16", "float32"}},
      {"float4", {"float8", "bfloat16", "float16", "float32"}},
      {"int8", {"bfloat16", "float16", "float32"}},
      {"int4", {"int8", "bfloat16", "float16", "float32"}},
  };
  return table;
}

const Peak* best_flops(const std::vector<Peak>& peaks, std::string_view type) {
  const Peak* best = nullptr;
  for (const Peak& peak : peaks) {
    if (peak.quantity != "flops" || peak.type != type || !(peak.value > 0)) continue;
    if (best == nullptr || (best->source != "measured" && peak.source == "measured")) best = &peak;
  }
  return best;
}

UsedPeak used(const Peak& peak, std::string_view type) {
  return {.type = std::string(type),
          .peak_type = peak.type,
          .per_second = peak.value,
          .source = peak.source,
          .method = peak.method};
}

bool known(std::optional<double> value) { return value && std::isfinite(*value) && *value > 0; }

}  // namespace

std::string_view peak_type(std::string_view type) {
  const auto* const found = std::ranges::find(kSameRate, type, [](const auto& pair) { return pair.first; });
  return found == std::end(kSameRate) ? type : found->second;
}

std::optional<UsedPeak> flops_peak(const std::vector<Peak>& peaks, std::string_view type, std::string_view device) {
  const std::string_view wanted = peak_type(type);
  if (const Peak* peak = best_flops(peaks, wanted)) return used(*peak, type);
  const auto row = std::ranges::find(replacements(), wanted, &Replacements::type);
  if (row == replacements().end()) return std::nullopt;
  for (const std::string_view other : row->instead) {
    const Peak* peak = best_flops(peaks, other);
    if (peak == nullptr) continue;
    UsedPeak result = used(*peak, type);
    result.note = fmt::format("{} has no peak for {}; it would run as {}", device, type, peak->type);
    return result;
  }
  return std::nullopt;
}

std::optional<UsedPeak> bandwidth_peak(const std::vector<Peak>& peaks) {
  const Peak* peak = find_peak(peaks, "bandwidth", kMemoryStream);
  return peak != nullptr ? std::optional(used(*peak, "")) : std::nullopt;
}

const Peak* plain_cores_peak(const std::vector<Peak>& peaks, const std::string& type) {
  const Peak* peak = find_peak(peaks, "flops", type + "_vector");
  return peak == nullptr && type == "float32" ? find_peak(peaks, "flops", type) : peak;
}

std::optional<double> time_ns(std::optional<double> amount, std::optional<double> per_second) {
  if (!amount || !std::isfinite(*amount) || *amount < 0 || !known(per_second)) return std::nullopt;
  return *amount / *per_second * 1e9;
}

std::optional<double> share(std::optional<double> least_ns, double time_ns) {
  return known(least_ns) && known(time_ns) ? std::optional(*least_ns / time_ns) : std::nullopt;
}

std::optional<double> efficiency(double amount, double time_ns, double peak_per_second) {
  return share(hw::time_ns(amount, peak_per_second), time_ns);
}

std::optional<double> ridge(std::optional<double> flops_per_s, std::optional<double> bytes_per_s) {
  return flops_per_s && known(bytes_per_s) ? std::optional(*flops_per_s / *bytes_per_s) : std::nullopt;
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

Floor floor_of(std::optional<double> compute_ns, std::optional<double> memory_ns) {
  Floor floor{.compute_ns = compute_ns, .memory_ns = memory_ns, .ns = std::nullopt};
  if (compute_ns && memory_ns) floor.ns = std::max(*compute_ns, *memory_ns);
  return floor;
}

MemoryTime memory_time(double read_bytes, double all_bytes, const std::vector<Peak>& peaks) {
  const Peak* read = find_peak(peaks, "bandwidth", "read");
  if (all_bytes <= 0 || read == nullptr || read->value <= 0) return {};
  // Where writes do not wait for reads, a mix of both beats reading alone.
  const Peak* stream = find_peak(peaks, "bandwidth", kMemoryStream);
  const double reading = *time_ns(std::max(0.0, read_bytes), read->value);
  const double streaming = stream != nullptr ? *time_ns(all_bytes, stream->value) : 0;
  return reading >= streaming ? MemoryTime{reading, read} : MemoryTime{streaming, stream};
}

Roofline::Roofline(const std::vector<Peak>& peaks, std::string_view device, const std::vector<std::string>& types)
    : bandwidth_(bandwidth_peak(peaks)) {
  for (const std::string& type : types) {
    if (std::optional<UsedPeak> peak = flops_peak(peaks, type, device)) {
      peaks_.push_back(std::move(*peak));
    } else {
      unknown_types_.push_back(type);
    }
  }
}

std::optional<double> Roofline::compute_ns(const std::string& type, double flops) const {
  if (flops <= 0) return 0.0;
  const auto peak = std::ranges::find(peaks_, type, &UsedPeak::type);
  return peak == peaks_.end() ? std::nullopt : time_ns(flops, peak->per_second);
}

std::optional<double> Roofline::compute_ns(const FlopsByType& flops) const {
  double sum = 0;
  for (const auto& [type, amount] : flops) {
    const std::optional<double> part = compute_ns(type, amount);
    if (!part) return std::nullopt;
    sum += *part;
  }
  return sum;
}

std::optional<double> Roofline::memory_ns(double bytes) const {
  return bandwidth_ ? time_ns(bytes, bandwidth_->per_second) : std::nullopt;
}

std::optional<double> Roofline::ridge(const FlopsByType& flops) const {
  const std::optional<double> compute = compute_ns(flops);
  if (!known(compute) || !bandwidth_) return std::nullopt;
  double sum = 0;
  for (const auto& [type, amount] : flops) sum += amount;
  return hw::ridge(sum / (*compute * 1e-9), bandwidth_->per_second);
}

}  // namespace llmprof::hw
