#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/human.h"
#include "bench/bench.h"
#include "hw/catalog.h"

namespace llmprof::bench {
namespace {

constexpr double kMeasuredMargin = 1.05;  // the best of a few rounds is not the best of all
constexpr double kSheetRounding = 1.01;   // 989.4 stands as 989

std::string in_words(const hw::Peak& peak) {
  return fmt::format("{} {} ({})", base::human_rate(peak.value, peak.unit.c_str()), peak.type, peak.source);
}

const hw::Peak* flops_peak(const Problem& problem, const std::vector<hw::Peak>& peaks) {
  const hw::Peak* peak = hw::find_peak(peaks, "flops", type_name(problem.type));
  return peak != nullptr && peak->value > 0 ? peak : nullptr;
}

const hw::Peak* read_peak(const std::vector<hw::Peak>& peaks) {
  const hw::Peak* peak = hw::find_peak(peaks, "bandwidth", "read");
  return peak != nullptr && peak->value > 0 ? peak : nullptr;
}

// The fastest stream through memory: where writes do not wait for reads, a mix of both beats reading alone.
const hw::Peak* best_stream(const std::vector<hw::Peak>& peaks) {
  return hw::find_peak(peaks, "bandwidth", hw::kMemoryStream);
}

// What nothing on this device can exceed.
struct Limit {
  double per_second = 0;
  std::string words;
};

Limit of_measured(const hw::Peak& peak) {
  return {peak.value * kMeasuredMargin, fmt::format("1.05 of {}", in_words(peak))};
}

std::optional<Limit> compute_limit(const Problem& problem, const hw::Device& device,
                                   const std::vector<hw::Peak>& peaks) {
  const std::string type(hw::peak_type(type_name(problem.type)));
  const hw::DeviceSpec* spec = hw::find_device(device.name);
  const hw::Figure* figure = spec != nullptr ? spec->peak(type) : nullptr;
  if (figure != nullptr && figure->verified()) {
    const hw::Figure* clock = spec->figure("clock");
    const double faster = clock != nullptr && device.clock_mhz ? std::max(1.0, *device.clock_mhz / clock->value) : 1;
    const double value = figure->value * faster;
    return Limit{value * kSheetRounding,
                 fmt::format("{} {} (spec{})", base::human_rate(value, figure->unit.c_str()), type,
                             faster > 1 ? fmt::format(" at {:.0f} MHz", *device.clock_mhz) : "")};
  }
  const hw::Peak* peak = flops_peak(problem, peaks);
  // A peak that was measured while others had the CPU is too low to judge by.
  if (peak == nullptr || peak->method.find(hw::kShortOfCpu) != std::string::npos) return std::nullopt;
  return of_measured(*peak);
}

std::optional<Limit> memory_limit(const hw::Device& device, const std::vector<hw::Peak>& peaks) {
  const hw::DeviceSpec* spec = hw::find_device(device.name);
  const hw::Figure* figure = spec != nullptr ? spec->figure("bandwidth") : nullptr;
  if (figure != nullptr && figure->verified()) {
    return Limit{figure->value * kSheetRounding,
                 fmt::format("{} (spec)", base::human_rate(figure->value, figure->unit.c_str()))};
  }
  const hw::Peak* best = best_stream(peaks);
  if (best == nullptr || best->method.find(hw::kShortOfCpu) != std::string::npos) return std::nullopt;
  return of_measured(*best);
}

// Bytes that must come from memory, or go there, before the call is over. An unknown cache may hold anything.
double uncached_bytes(const model::KernelWork& work, Cache cache, std::int64_t cache_bytes) {
  const auto size = static_cast<double>(cache_bytes);
  if (cache == Cache::kHot) return cache_bytes > 0 ? std::max(0.0, work.bytes() - size) : 0;
  return work.read_bytes + (cache_bytes > 0 ? std::max(0.0, work.write_bytes - size) : 0);
}

std::string too_fast(double seconds, double amount, const Limit& limit, const std::string& amount_words) {
  const double least = amount / limit.per_second;
  if (seconds >= least) return "";
  return fmt::format("faster than possible: measured {}, but {} take at least {} at {}", base::human_ns(seconds * 1e9),
                     amount_words, base::human_ns(least * 1e9), limit.words);
}

}  // namespace

Roof roof_of(const Problem& problem, const model::KernelWork& work, const std::vector<hw::Peak>& peaks) {
  const hw::Peak* flops = flops_peak(problem, peaks);
  const hw::Peak* read = read_peak(peaks);
  if ((work.flops > 0 && flops == nullptr) || (work.bytes() > 0 && read == nullptr)) return {};
  const double compute = work.flops > 0 ? work.flops / flops->value : 0;
  if (compute <= 0 && work.bytes() <= 0) return {};
  // What is read cannot come faster than reads do, nor all of it faster than the fastest stream.
  const hw::Peak* stream = work.bytes() > 0 ? best_stream(peaks) : nullptr;
  const double reading = work.read_bytes > 0 ? work.read_bytes / read->value : 0;
  const double streaming = stream != nullptr ? work.bytes() / stream->value : 0;
  if (compute > std::max(reading, streaming)) return {compute, "compute", in_words(*flops)};
  if (reading >= streaming) return {reading, "memory", in_words(*read)};
  return {streaming, "memory", in_words(*stream)};
}

Roof with_latency(Roof roof, double seconds, double start_seconds) {
  if (roof.floor_seconds <= 0) return roof;
  const bool starts_long = 2 * start_seconds > roof.floor_seconds && 4 * start_seconds > seconds;
  if (starts_long && seconds > 2 * roof.floor_seconds) roof.bound = "latency";
  return roof;
}

std::string faster_than_light(const Problem& problem, const model::KernelWork& work, double seconds, Cache cache,
                              const hw::Device& device, const std::vector<hw::Peak>& peaks) {
  if (work.flops > 0) {
    if (const auto limit = compute_limit(problem, device, peaks)) {
      const char* unit = problem.type == Type::kInt8 ? "OP" : "FLOP";
      std::string why = too_fast(seconds, work.flops, *limit, base::human_count(work.flops) + unit);
      if (!why.empty()) return why;
    }
  }
  const double bytes = uncached_bytes(work, cache, device.cache_bytes);
  const auto limit = memory_limit(device, peaks);
  if (bytes <= 0 || !limit) return "";
  return too_fast(seconds, bytes, *limit,
                  fmt::format("{} that cannot be in the cache before", base::human_bytes(bytes)));
}

}  // namespace llmprof::bench
