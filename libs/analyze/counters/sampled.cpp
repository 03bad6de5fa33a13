#include "analyze/counters/sampled.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/counters/align.h"
#include "analyze/counters/fold.h"
#include "base/human.h"

namespace llmprof::analyze::counters {
namespace {

constexpr std::size_t kMostKernels = 4'000'000;  // that are looked at; samples after them are not unmixed
constexpr std::size_t kClasses = 12;             // the heaviest, that are told

std::optional<double> value_at(const hw::counters::Counter& counter, const SampleSet& samples, std::size_t i) {
  return hw::counters::evaluate(counter, [&](std::string_view metric) -> std::optional<double> {
    const auto found = std::ranges::find(samples.metrics, metric);
    if (found == samples.metrics.end()) return std::nullopt;
    return samples.values[static_cast<std::size_t>(found - samples.metrics.begin())][i];
  });
}

double seconds_of(const SampleSet& samples, std::size_t i) {
  return static_cast<double>(samples.end_ns[i] - samples.begin_ns[i]) * 1e-9;
}

// One counter of the catalogue in every sample, as a quantity that adds up.
std::vector<double> series_of(const hw::counters::Counter& counter, const SampleSet& samples) {
  std::vector<double> out(samples.size(), std::nan(""));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::optional<double> value = value_at(counter, samples, i);
    if (!value) continue;
    out[i] = counter.together == hw::counters::Aggregation::kSum ? *value : *value * seconds_of(samples, i);
  }
  return out;
}

// A measure of the device's activity in each sample.
std::vector<Sample> activity_of(const SampleSet& samples) {
  for (const char* name : {"sm_active_pct", "warps_active", "dram_read_bytes", "tensor_active_pct"}) {
    const hw::counters::Counter* counter = hw::counters::find_counter(name);
    if (counter == nullptr) continue;
    const std::vector<double> series = series_of(*counter, samples);
    std::vector<Sample> out;
    for (std::size_t i = 0; i < series.size(); ++i) {
      if (std::isfinite(series[i])) out.push_back({samples.begin_ns[i], samples.end_ns[i], series[i]});
    }
    if (!out.empty()) return out;
  }
  return {};
}

bool is_told(const hw::counters::Counter& counter) { return counter.name != "gpu_time_ns" && counter.unit != "Hz"; }

// How much of the last cache a launch may find filled, or leave filled, differently than in another order of kernels:
// DRAM bytes of one kernel then come out of, or go to, its neighbours' account. On an H200 (50 MiB) classes of a
// mixture differed from the same kernels alone by 2 to 11 MB a launch.
constexpr double kCacheShare = 0.25;

double cache_error_per_s(const hw::counters::Counter& counter, const UnmixedRate& rate, std::int64_t launches,
                         std::int64_t cache_bytes) {
  if (!counter.name.starts_with("dram_") || counter.unit != "bytes" || rate.time_ns <= 0) return 0;
  const double seconds = static_cast<double>(rate.time_ns) * 1e-9;
  return kCacheShare * static_cast<double>(cache_bytes) * static_cast<double>(launches) / seconds;
}

CounterValue unmixed_value(const hw::counters::Counter& counter, const UnmixedRate& rate, double cache_error,
                           std::int64_t samples) {
  const bool sum = counter.together == hw::counters::Aggregation::kSum;
  CounterValue out{.counter = counter.name,
                   .unit = sum ? counter.unit + "/s" : counter.unit,
                   .denominator = counter.denominator,
                   .value = rate.rate,
                   .spread = std::nullopt,
                   .error = std::nullopt,
                   .occurrences = samples,
                   .method = "unmixed"};
  const double error = std::hypot(rate.error, cache_error);
  if (rate.rate > 0) out.error = std::max(error / rate.rate, rate.told_apart ? 0.0 : 1.0);
  return out;
}

}  // namespace

Result<Timeline> read_timeline(const trace::Run& run, std::int64_t device_id) {
  Timeline out;
  std::vector<std::int32_t> kinds;  // by code of the name
  const std::string sql = fmt::format(
      "SELECT begin_ns, end_ns, name, CAST(source = 'estimated' AS BIGINT) FROM kernel_all WHERE device_id = {} AND "
      "end_ns > begin_ns ORDER BY begin_ns LIMIT {}",
      device_id, kMostKernels);
  LLMPROF_TRY(run.column_chunks(sql, [&](const trace::ColumnChunk& chunk) {
    for (std::size_t i = 0; i < chunk.count; ++i) {
      const auto code = static_cast<std::size_t>(chunk.values[2][i]);
      if (kinds.size() <= code) kinds.resize(code + 1, -1);
      if (kinds[code] < 0) {
        kinds[code] = static_cast<std::int32_t>(out.names.size());
        out.names.push_back(chunk.names[code]);
      }
      out.intervals.push_back({chunk.values[0][i], chunk.values[1][i], kinds[code]});
      out.estimated = out.estimated || chunk.values[3][i] > 0;
    }
    return true;
  }));
  return out;
}

void align_samples(const Timeline& timeline, SampleSet& samples, Counters& counters) {
  if (timeline.intervals.empty() || samples.size() == 0) return;
  const Alignment found = align(activity_of(samples), timeline.intervals);
  const double shift = found.certain ? found.shift_ns : 0;
  counters.clock_shift_ns = shift;
  counters.clock_fit = found.certain ? found.fit : found.fit_unshifted;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples.begin_ns[i] += static_cast<std::int64_t>(shift);
    samples.end_ns[i] += static_cast<std::int64_t>(shift);
  }
}

Metrics within(const SampleSet& samples, std::int64_t begin_ns, std::int64_t end_ns) {
  const auto first = std::ranges::upper_bound(samples.end_ns, begin_ns) - samples.end_ns.begin();
  std::vector<double> sums(samples.metrics.size()), weights(samples.metrics.size());
  double sampled = 0;
  for (auto i = static_cast<std::size_t>(first); i < samples.size() && samples.begin_ns[i] < end_ns; ++i) {
    const auto inside =
        static_cast<double>(std::min(samples.end_ns[i], end_ns) - std::max(samples.begin_ns[i], begin_ns));
    const double share = inside / static_cast<double>(samples.end_ns[i] - samples.begin_ns[i]);
    sampled += inside;
    for (std::size_t m = 0; m < sums.size(); ++m) {
      if (!std::isfinite(samples.values[m][i])) continue;
      sums[m] += samples.values[m][i] * (adds_up(samples.metrics[m]) ? share : inside);
      weights[m] += inside;
    }
  }
  Metrics out;
  const auto length = static_cast<double>(end_ns - begin_ns);
  if (sampled < 0.5 * length) return out;
  for (std::size_t m = 0; m < sums.size(); ++m) {
    if (weights[m] <= 0) continue;
    // What was not sampled is taken to be as the rest.
    out.emplace(samples.metrics[m], adds_up(samples.metrics[m]) ? sums[m] * length / weights[m] : sums[m] / weights[m]);
  }
  return out;
}

StepCosts fill_sampled_stages(const SampleSet& samples, const std::vector<PlacedStep>& steps, const Basis& basis,
                              Summary& summary) {
  StepCosts costs;
  const double period = summary.counters.period_ns.value_or(0);
  for (const Stage& stage : summary.stages) {
    Fold fold;
    CostSum cost;
    for (const PlacedStep& step : steps) {
      if (step.stage != stage.name || step.end_ns <= step.turn_ns) continue;
      const Metrics metrics = within(samples, step.turn_ns, step.end_ns);
      if (metrics.empty()) continue;
      fold.add(metrics, 1, static_cast<double>(step.end_ns - step.turn_ns));
      cost.add(step.flops, step.bytes, 1);
    }
    if (fold.count() == 0) continue;
    if (stage.step_p50_ns && static_cast<double>(*stage.step_p50_ns) < 2 * period)
      summary.counters.notes.push_back(fmt::format(
          "{}: a step takes {}, a sample {}: what runs beside or between its steps is mixed into its values",
          stage.name, base::human_ns(static_cast<double>(*stage.step_p50_ns)), base::human_ns(period)));
    CountedStage counted{.stage = stage.name, .steps = stage.steps, .measured = fold.count(), .method = "sampled"};
    counted.values = fold.values("sampled");
    costs[stage.name] = cost.mean();
    complete(counted, fold.metrics(), samples.device_id, costs[stage.name], {basis, summary});
    summary.counters.stages.push_back(std::move(counted));
  }
  return costs;
}

void fill_unmixed(const SampleSet& samples, const Timeline& timeline, std::int64_t cache_bytes, Counters& counters) {
  if (timeline.intervals.empty()) {
    counters.unmixed_why = "no kernels were recorded on the device that was sampled";
    return;
  }
  UnmixInput input{.samples = {}, .intervals = timeline.intervals, .kinds = 0, .estimated = timeline.estimated};
  input.kinds = static_cast<std::int32_t>(timeline.names.size());
  for (std::size_t i = 0; i < samples.size(); ++i) input.samples.push_back({samples.begin_ns[i], samples.end_ns[i], 0});
  std::vector<const hw::counters::Counter*> told;
  std::vector<UnmixSeries> series;
  for (const hw::counters::Counter& counter : hw::counters::catalog()) {
    if (!is_told(counter)) continue;
    std::vector<double> counts = series_of(counter, samples);
    if (std::ranges::none_of(counts, [](double count) { return std::isfinite(count); })) continue;
    told.push_back(&counter);
    series.push_back({std::move(counts)});
  }
  const std::vector<Unmixed> unmixed = unmix(input, series);
  std::vector<std::int64_t> launches(timeline.names.size());
  for (const Interval& interval : timeline.intervals) ++launches[static_cast<std::size_t>(interval.kind)];
  std::map<std::int32_t, UnmixedClass> classes;
  for (std::size_t m = 0; m < unmixed.size(); ++m) {
    for (const UnmixedRate& rate : unmixed[m].kinds) {
      UnmixedClass& each = classes[rate.kind];
      each.name = timeline.names[static_cast<std::size_t>(rate.kind)];
      each.time_ns = std::max(each.time_ns, rate.time_ns);
      const double cache =
          cache_error_per_s(*told[m], rate, launches[static_cast<std::size_t>(rate.kind)], cache_bytes);
      each.values.push_back(unmixed_value(*told[m], rate, cache, unmixed[m].samples));
    }
  }
  for (auto& [kind, each] : classes) counters.unmixed.push_back(std::move(each));
  std::ranges::stable_sort(counters.unmixed, std::greater{}, &UnmixedClass::time_ns);
  const auto too_short = std::ranges::count_if(counters.unmixed, [&](const UnmixedClass& each) {
    return static_cast<double>(each.time_ns) < counters.period_ns.value_or(0);
  });
  if (too_short > 0)
    counters.notes.push_back(fmt::format("{} kernels ran for less than one sample ({}) in all: too short for a value",
                                         too_short, base::human_ns(counters.period_ns.value_or(0))));
  if (counters.unmixed.size() > kClasses) counters.unmixed.resize(kClasses);
  if (counters.unmixed.empty()) counters.unmixed_why = "no kernel ran in a sample, or there are too few samples";
}

}  // namespace llmprof::analyze::counters
