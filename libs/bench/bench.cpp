#include "bench/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/human.h"
#include "bench/check.h"
#include "bench/cuda/context.h"
#include "bench/operator.h"
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

constexpr double kUnknownCacheBytes = 64 << 20;
// 2^57: six bits are left for bytes per value, for gates, for anything an operator multiplies its axes with.
constexpr double kMostProduct = 0x1p57;
constexpr double kCheapMultiplyAdds = 1e8;
constexpr double kCheapValues = 4e6;
constexpr double kEventSeconds = 3e-6;  // seen around an empty kernel, with room

}  // namespace

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
               fmt::format("{} has no implementation {} on a GPU: it has {}", op.name, name, names)};
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
