#include "bench/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/human.h"
#include "bench/bench_plan.h"
#include "bench/check.h"
#include "bench/cuda/context.h"
#include "hw/catalog.h"
#include "hw/roof.h"

namespace llmprof::bench {

namespace {

Error unknown_device(const std::string& device) {
  return {ErrorCode::kUsage, fmt::format("cannot measure on device {}", device), "cpu, cuda, cuda:0, cuda:1, …"};
}

// The number behind "cuda:".
Result<int> gpu_index(const std::string& device) {
  constexpr std::string_view kPrefix = "cuda:";
  if (device == "cuda") return 0;
  if (!device.starts_with(kPrefix)) return unknown_device(device);
  const char *begin = device.data() + kPrefix.size(), *end = device.data() + device.size();
  int index = 0;
  const auto [stop, problem] = std::from_chars(begin, end, index);
  if (problem != std::errc{} || stop != end || index < 0) return unknown_device(device);
  return index;
}

bool has_gpu() {
  const Result<int> count = cuda::Context::device_count();
  return count && *count > 0;
}

}  // namespace

std::string_view status_name(Status status) {
  switch (status) {
    case Status::kMeasured:
      return "measured";
    case Status::kSkipped:
      return "skipped";
    case Status::kFailed:
      return "failed";
  }
  return "";
}

PointResult DeviceBench::run(const Problem& problem, const std::function<bool()>& go_on) {
  PointResult result{.problem = problem};
  const Admission admission = admit(problem);
  result.reason = admission.why_not;
  if (!result.reason.empty()) return result;
  result.problem = admission.problem;
  result.work = admission.op->work(result.problem);
  const Result<void> done = check_and_measure(*admission.op, result, go_on);
  if (!done) {
    const ErrorCode code = done.error().code;
    const bool cannot = code == ErrorCode::kUnsupported || code == ErrorCode::kInterrupted;
    result.status = cannot ? Status::kSkipped : Status::kFailed;
    result.reason = done.error().message;
  }
  return result;
}

Result<void> DeviceBench::judge_error(const Operator& op, const Problem& checked, double error, PointResult& result) {
  if (std::isfinite(error)) result.error = std::max(result.error.value_or(0), error);
  std::string why = why_wrong(op, checked, error);
  if (why.empty()) return {};
  return Error{ErrorCode::kInternal, std::move(why), ""};
}

std::string DeviceBench::why_too_fast(const PointResult& result) const {
  return why_impossible(result.problem, result.work, result.measured.time.median, options_.cache, device_, peaks_);
}

Result<std::unique_ptr<Bench>> open_bench(const std::string& device, const BenchOptions& options) {
  if (device == "cpu" || (device.empty() && !has_gpu())) return open_cpu_bench(options);
  LLMPROF_LET(const int index, gpu_index(device.empty() ? "cuda" : device));
  return open_cuda_bench(index, options);
}

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
  if (peak == nullptr || hw::short_of_cpu(*peak)) return std::nullopt;
  return of_measured(*peak);
}

std::optional<Limit> memory_limit(const hw::Device& device, const std::vector<hw::Peak>& peaks) {
  const hw::DeviceSpec* spec = hw::find_device(device.name);
  const hw::Figure* figure = spec != nullptr ? spec->figure("bandwidth") : nullptr;
  if (figure != nullptr && figure->verified()) {
    return Limit{figure->value * kSheetRounding,
                 fmt::format("{} (spec)", base::human_rate(figure->value, figure->unit.c_str()))};
  }
  const hw::Peak* best = hw::find_peak(peaks, "bandwidth", hw::kMemoryStream);
  if (best == nullptr || hw::short_of_cpu(*best)) return std::nullopt;
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
  const hw::MemoryTime memory = hw::memory_time(work.read_bytes, work.bytes(), peaks);
  if ((work.flops > 0 && flops == nullptr) || (work.bytes() > 0 && memory.peak == nullptr)) return {};
  const hw::Floor floor = hw::floor_of(work.flops > 0 ? hw::time_ns(work.flops, flops->value) : 0.0, memory.ns);
  if (floor.bound() == "unknown") return {};
  const bool compute = floor.bound() == "compute";
  return {*floor.ns * 1e-9, std::string(floor.bound()), in_words(compute ? *flops : *memory.peak)};
}

Roof with_latency(Roof roof, double seconds, double start_seconds) {
  if (roof.floor_seconds <= 0) return roof;
  const bool starts_long = 2 * start_seconds > roof.floor_seconds && 4 * start_seconds > seconds;
  if (starts_long && seconds > 2 * roof.floor_seconds) roof.bound = "latency";
  return roof;
}

std::string why_impossible(const Problem& problem, const model::KernelWork& work, double seconds, Cache cache,
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
