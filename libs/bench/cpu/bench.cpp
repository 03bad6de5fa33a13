#include <fmt/format.h>

#include <sys/mman.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "base/human.h"
#include "bench/bench.h"
#include "bench/check.h"
#include "bench/cpu/calls.h"
#include "hw/system_files.h"
#include "wire/clock.h"

namespace llmprof::bench {

namespace {

constexpr Type kFloat32Only[] = {Type::kFloat32};
constexpr double kMemoryShare = 0.8;  // of what is free: other programs live, too
constexpr std::int64_t kMostSets = 4096;
// A cache whose lines do not leave in the order in which they came keeps some of twice its size.
constexpr double kCacheRounds = 2;
constexpr double kEnoughCpu = 0.85;  // threads that wait for each other take a few percent, too
constexpr std::int64_t kMostThreads = 1024;

// What it costs to have all threads begin and end: the median of some empty rounds.
double start_seconds_of(const Team& team) {
  std::vector<double> rounds;
  for (int i = 0; i < 200; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    team.each(team.size(), 1, [](std::int64_t, std::int64_t) {});
    rounds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return statistics(rounds).median;
}

// Reads and writes a buffer of twice the cache, so that nothing else is left in it.
void flush_cache(const hw::PeakBuffer& buffer, const Team& team) {
  auto* words = reinterpret_cast<std::uint64_t*>(buffer.data());
  team.each(static_cast<std::int64_t>(buffer.bytes()) / 8, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) words[i] += 1;
  });
}

class CpuBench final : public DeviceBench {
 public:
  CpuBench(const BenchOptions& options, hw::Device device, std::vector<hw::Peak> peaks, bool may_measure_peaks)
      : DeviceBench(options),
        may_measure_peaks_(may_measure_peaks),
        team_(std::clamp<std::int64_t>(options.threads > 0 ? options.threads : device.units, 1, kMostThreads)) {
    device_ = std::move(device);
    peaks_ = std::move(peaks);
    start_seconds_ = start_seconds_of(team_);
    if (hw::measured_while_busy(peaks_))
      notes_.push_back("the peaks were measured while other programs had the CPU: too low");
  }

 private:
  std::string why_not_here(const Operator& op, const Problem& problem) const {
    const auto& name = options_.implementation;
    if (op.cpu == nullptr) return fmt::format("{} has no CPU implementation", op.name);
    if (!name.empty() && name != "cpu")
      return fmt::format("{} has no implementation {} on a CPU: it has cpu", op.name, name);
    return why_type_unknown(op, problem.type, op.cpu_types.empty() ? std::span<const Type>(kFloat32Only) : op.cpu_types,
                            "CPU");
  }

  Result<void> check_and_measure(const Operator& op, PointResult& result, const std::function<bool()>& go_on) override {
    if (std::string why = why_not_here(op, result.problem); !why.empty())
      return Error{ErrorCode::kUnsupported, std::move(why), ""};
    result.implementation = "cpu";
    result.method = op.cpu_method_of != nullptr ? op.cpu_method_of(result.problem) : std::string(op.cpu_method);
    result.roof = roof_of(result.problem, result.work, peaks_);
    const std::vector<TensorSpec> specs = op.tensors(result.problem);
    const double one_set = cpu_set_bytes(specs), free = available_memory_bytes(hw::SystemFiles());
    const BufferPlan plan =
        plan_buffers({.cache = options_.cache,
                      .set_bytes = one_set,
                      .touched_bytes = result.work.bytes(),
                      .cache_bytes = kCacheRounds * static_cast<double>(device_.cache_bytes),
                      .budget_bytes = free > 0 ? buffer_budget(one_set, free * kMemoryShare) : one_set,
                      .most_sets = kMostSets});
    if (plan.sets == 0)
      return Error{ErrorCode::kUnsupported, why_not_fit(one_set, free, free * (1 - kMemoryShare)), ""};
    if (options_.check) LLMPROF_TRY(check(op, specs, result));
    LLMPROF_LET(const CpuBuffers buffers, CpuBuffers::create(specs, plan.sets, team_, options_.seed));
    for (const TensorSpec& spec : specs) result.tensor_bytes += spec.bytes();
    result.buffer_sets = plan.sets;
    return measure_with(op, buffers, !plan.enough && options_.cache == Cache::kCold, result, go_on);
  }

  Result<void> check(const Operator& op, const std::vector<TensorSpec>& specs, PointResult& result) {
    std::vector<Problem> problems{op.small(result.problem)};
    if (!options_.small_checks && cheap_reference(result.work, specs) && problems.front() != result.problem)
      problems.push_back(result.problem);
    for (const Problem& problem : problems) {
      const auto [found, fresh] = errors_.try_emplace(problem.key());
      if (fresh) found->second = check_on_cpu(op, problem, team_, options_.seed);
      LLMPROF_TRY(judge_error(op, problem, found->second, result));
    }
    return {};
  }

  Result<void> measure_with(const Operator& op, const CpuBuffers& buffers, bool flush, PointResult& result,
                            const std::function<bool()>& go_on) {
    CpuCalls calls{.call = [&](std::size_t set) { op.cpu(result.problem, buffers.set(set), team_); },
                   .sets = buffers.sets()};
    hw::PeakBuffer cold;
    if (flush) {
      const auto cache = static_cast<double>(device_.cache_bytes > 0 ? device_.cache_bytes : 64 << 20);
      LLMPROF_LET(cold, map_memory(static_cast<std::int64_t>(2 * kCacheRounds * cache)));
      calls.flush = [&] { flush_cache(cold, team_); };
    }
    CpuSampler sampler(std::move(calls), options_.cache);
    LLMPROF_LET(result.measured, measure(sampler, options_.measure, go_on));
    result.timer = sampler.timer();
    result.status = Status::kMeasured;
    result.roof = with_latency(result.roof, result.measured.time.median, start_seconds_);
    note_what_matters(sampler, result);
    judge_by_limits(result);
    return {};
  }

  void note_what_matters(const CpuSampler& sampler, PointResult& result) const {
    if (sampler.cpu_share() < kEnoughCpu) {
      add_remark(result.reason, fmt::format("other programs had the CPU, or threads waited: {} {:.0f} %",
                                            hw::kShortOfCpu, sampler.cpu_share() * 100));
    }
    if (team_.size() < device_.units) {
      add_remark(result.reason,
                 fmt::format("{} of {} CPUs used; the roof is that of all", team_.size(), device_.units));
    }
  }

  // The best of many calls is what must be possible. Peaks of a CPU that were measured on a worse day are measured
  // again, once.
  void judge_by_limits(PointResult& result) {
    std::string impossible = why_too_fast(result);
    if (!impossible.empty() && may_measure_peaks_) {
      may_measure_peaks_ = false;
      measure_peaks_again();
      result.roof =
          with_latency(roof_of(result.problem, result.work, peaks_), result.measured.time.median, start_seconds_);
      impossible = why_too_fast(result);
    }
    if (impossible.empty()) return;
    result.status = Status::kFailed;
    result.reason = impossible;
  }

  void measure_peaks_again() {
    const auto fresh = hw::measure_cpu_peaks(device_, base::no_progress);
    if (!fresh) return;
    for (hw::Peak& peak : peaks_) {
      const hw::Peak* now = hw::find_peak(*fresh, peak.quantity, peak.type);
      if (now != nullptr && now->type == peak.type && now->value > peak.value) peak = *now;
    }
    notes_.push_back(
        "a result was faster than the stored peaks of this CPU: they were measured again, the higher ones count");
  }

  bool may_measure_peaks_;
  Team team_;
};

constexpr std::int64_t kMostDrawn = 1 << 20;
constexpr std::int64_t kTouchGrain = 1 << 20;  // bytes

std::int64_t rounded_up(std::int64_t bytes, std::int64_t step) {
  return (std::max<std::int64_t>(bytes, 1) + step - 1) / step * step;
}

// dst[i] = src[i % period], by all threads: each touches first what it will probably compute on.
void tile(std::byte* to, std::int64_t bytes, const std::byte* from, std::int64_t period, const Team& team) {
  team.each(bytes, kTouchGrain, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t at = begin % period, length = std::min(period - at, end - begin);
      std::memcpy(to + begin, from + at, static_cast<std::size_t>(length));
      begin += length;
    }
  });
}

void zero(std::byte* to, std::int64_t bytes, const Team& team) {
  team.each(bytes, kTouchGrain, [&](std::int64_t begin, std::int64_t end) {
    std::memset(to + begin, 0, static_cast<std::size_t>(end - begin));
  });
}

// Reading the clock takes some 20 to 50 ns: a hundredth of 20 us is 200 ns.
constexpr double kShortCall = 20e-6, kSampleSeconds = 100e-6;
constexpr double kMostCalls = 10'000;
constexpr double kLeastSeconds = 1e-9;  // the clock's step: a call that seems to take none took less than one

double seconds_of(clockid_t clock) { return static_cast<double>(wire::read_clock_ns(clock)) * 1e-9; }

double now() { return seconds_of(CLOCK_MONOTONIC); }

}  // namespace

std::unique_ptr<Bench> make_cpu_bench(const BenchOptions& options, std::vector<hw::Peak> peaks) {
  return std::make_unique<CpuBench>(options, hw::probe_cpu(), std::move(peaks), false);
}

Result<std::unique_ptr<Bench>> open_cpu_bench(const BenchOptions& options) {
  const hw::Device device = hw::probe_cpu();
  std::vector<hw::Peak> peaks = hw::cached_peaks(device);
  const bool good = !options.measure_peaks || hw::cpu_peaks_are_good(peaks);
  if (!good) {
    LLMPROF_LET(const std::vector<hw::Peak> fresh, hw::measure_cpu_peaks(device, base::no_progress));
    peaks = hw::merged_peaks(peaks, fresh);
    (void)hw::store_peaks(device, peaks);  // where there is no place for them, they are measured each time
  }
  return std::unique_ptr<Bench>(
      std::make_unique<CpuBench>(options, device, std::move(peaks), good && options.measure_peaks));
}

Result<hw::PeakBuffer> map_memory(std::int64_t bytes) {
  hw::PeakBuffer mapping(static_cast<std::size_t>(bytes));
  if (mapping.data() != nullptr) return mapping;
  return Error{ErrorCode::kUnsupported,
               fmt::format("the system gives no {} of memory", base::human_bytes(static_cast<double>(bytes)))};
}

void fill_tensor(const TensorSpec& spec, std::uint64_t seed, const Team& team, std::byte* out) {
  TensorSpec drawn = spec;
  if (spec.fill.kind != Fill::Kind::kPermutation) drawn.elements = std::min(spec.elements, kMostDrawn);
  std::vector<std::byte> bytes(static_cast<std::size_t>(drawn.bytes()));
  encode(random_values(drawn, seed), spec.type, bytes.data());
  if (!bytes.empty()) tile(out, spec.bytes(), bytes.data(), drawn.bytes(), team);
}

double cpu_set_bytes(std::span<const TensorSpec> specs) {
  return std::ceil(set_bytes(specs, kCpuAlignment) / kPageBytes) * kPageBytes;
}

Result<CpuBuffers> CpuBuffers::create(std::span<const TensorSpec> specs, std::int64_t sets, const Team& team,
                                      std::uint64_t seed) {
  const auto stride = static_cast<std::int64_t>(cpu_set_bytes(specs));
  CpuBuffers buffers;
  LLMPROF_LET(buffers.mapping_, map_memory(stride * sets));
  for (std::int64_t set = 0; set < sets; ++set) {
    std::byte* at = buffers.mapping_.data() + set * stride;
    auto& tensors = buffers.sets_.emplace_back();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      tensors.push_back(at);
      if (specs[i].role == Role::kOut) {
        zero(at, specs[i].bytes(), team);
      } else if (set == 0) {
        fill_tensor(specs[i], seed * 131 + i, team, at);
      } else if (specs[i].bytes() > 0) {
        tile(at, specs[i].bytes(), buffers.sets_[0][i], specs[i].bytes(), team);
      }
      at += rounded_up(specs[i].bytes(), kCpuAlignment);
    }
  }
  return buffers;
}

double available_memory_bytes(const hw::SystemFiles& files) {
  const std::string text = files.value("proc/meminfo", "MemAvailable");  // "23131056 kB"
  const auto kilobytes = hw::to_number(hw::trim(std::string_view(text).substr(0, text.find(' '))));
  double bytes = kilobytes ? static_cast<double>(*kilobytes) * 1024 : 0;
  if (const auto limit = hw::cgroup_limits(files).memory_bytes) {
    bytes = bytes > 0 ? std::min(bytes, static_cast<double>(*limit)) : static_cast<double>(*limit);
  }
  return bytes;
}

std::size_t calls_per_sample(double call_seconds) {
  if (call_seconds >= kShortCall) return 1;
  return static_cast<std::size_t>(
      std::min(kMostCalls, std::ceil(kSampleSeconds / std::max(call_seconds, kLeastSeconds))));
}

Result<std::vector<Sample>> CpuSampler::next(std::size_t wanted) {
  const double cpu_before = seconds_of(CLOCK_THREAD_CPUTIME_ID), wall_before = now();
  if (cache_ == Cache::kHot && !calls_per_sample_) choose_calls_per_sample();
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < wanted; ++i) {
    samples.push_back({.seconds = cache_ == Cache::kHot ? hot_sample() : cold_sample()});
  }
  cpu_seconds_ += seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu_before;
  wall_seconds_ += now() - wall_before;
  return samples;
}

double CpuSampler::cold_sample() {
  if (next_set_ == 0 && calls_.flush) calls_.flush();
  const double begin = now();
  calls_.call(next_set_);
  const double end = now();
  next_set_ = (next_set_ + 1) % std::max<std::size_t>(calls_.sets, 1);
  return std::max(end - begin, kLeastSeconds);
}

double CpuSampler::hot_sample() {
  const double begin = now();
  for (std::size_t i = 0; i < *calls_per_sample_; ++i) calls_.call(0);
  return std::max(now() - begin, kLeastSeconds) / static_cast<double>(*calls_per_sample_);
}

// The best of three: the first one warms the cache, and others may be disturbed.
void CpuSampler::choose_calls_per_sample() {
  double best = kShortCall;
  for (int i = 0; i < 3; ++i) {
    const double begin = now();
    calls_.call(0);
    best = std::min(best, now() - begin);
  }
  calls_per_sample_ = calls_per_sample(best);
}

std::string CpuSampler::timer() const {
  if (calls_per_sample_.value_or(1) == 1) return "clock";
  return fmt::format("clock, {} calls at a time", *calls_per_sample_);
}

}  // namespace llmprof::bench
