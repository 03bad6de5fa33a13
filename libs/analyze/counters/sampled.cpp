#include "analyze/counters/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>

#include "analyze/counters/readings.h"
#include "analyze/counters/unmix.h"
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
  return kCacheShare * cache_bytes * static_cast<double>(launches) / seconds;
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
  const double length = end_ns - begin_ns;
  if (sampled < 0.5 * length) return out;
  for (std::size_t m = 0; m < sums.size(); ++m) {
    if (weights[m] <= 0) continue;
    // What was not sampled is taken to be as the rest.
    out.emplace(samples.metrics[m], adds_up(samples.metrics[m]) ? sums[m] * length / weights[m] : sums[m] / weights[m]);
  }
  return out;
}

StepCosts fill_sampled_stages(const SampleSet& samples, const std::vector<PlacedStep>& steps,
                              const AnalysisContext& analysis, Summary& summary) {
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
    complete(counted, fold.metrics(), samples.device_id, costs[stage.name], {analysis, summary});
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
  for (const Interval& interval : timeline.intervals) ++launches[interval.kind];
  std::map<std::int32_t, UnmixedClass> classes;
  for (std::size_t m = 0; m < unmixed.size(); ++m) {
    for (const UnmixedRate& rate : unmixed[m].kinds) {
      UnmixedClass& each = classes[rate.kind];
      each.name = timeline.names[rate.kind];
      each.time_ns = std::max(each.time_ns, rate.time_ns);
      const double cache = cache_error_per_s(*told[m], rate, launches[rate.kind], cache_bytes);
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

namespace {

constexpr std::size_t kMostSamples = 20'000;  // more says nothing new about one number
constexpr int kSteps = 30;                    // of the search, to either side
constexpr double kLeastFit = 0.3;
constexpr double kClearlyBetter = 0.9;  // of what was unexplained before

std::vector<std::int64_t> grid(double most_ns, int steps) {
  std::vector<std::int64_t> shifts;
  for (int i = -steps; i <= steps; ++i) shifts.push_back(std::llround(i * most_ns / steps));
  return shifts;
}

// Of fits on such a grid: the best, refined by the parabola through it and its neighbours.
double top_of(const std::vector<double>& fits, double most_ns) {
  const auto top = static_cast<std::size_t>(std::ranges::max_element(fits) - fits.begin());
  const double middle = fits.size() / 2;
  const double step = most_ns / middle;
  const double shift = (static_cast<double>(top) - middle) * step;
  if (top == 0 || top + 1 >= fits.size()) return shift;
  const double bend = fits[top - 1] - 2 * fits[top] + fits[top + 1];
  return bend < 0 ? shift + step * std::clamp(0.5 * (fits[top - 1] - fits[top + 1]) / bend, -0.5, 0.5) : shift;
}

class Search {
 public:
  Search(std::span<const Sample> samples, std::span<const Interval> busy) : samples_(samples), busy_(busy) {}

  // Correlation of the samples' counts with the time that kernels ran in them, the samples being moved.
  double fit(double shift_ns) const {
    double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    std::size_t from = 0;
    const auto shift = static_cast<std::int64_t>(std::llround(shift_ns));
    for (const Sample& sample : samples_) {
      if (!std::isfinite(sample.count)) continue;
      // As parts of the sample's length, which may vary.
      const double length = sample.end_ns - sample.begin_ns;
      const double ran = running(sample.begin_ns + shift, sample.end_ns + shift, from) / length;
      const double count = sample.count / length;
      n += 1, x += ran, y += count, xx += ran * ran, yy += count * count, xy += ran * count;
    }
    if (n < 2) return 0;
    const double both = (xx - x * x / n) * (yy - y * y / n);
    return both > 0 ? (xy - x * y / n) / std::sqrt(both) : 0;
  }

  std::pair<double, double> best(double most_ns) const {
    std::vector<double> fits;
    for (const std::int64_t shift : grid(most_ns, kSteps)) fits.push_back(fit(static_cast<double>(shift)));
    const double shift = top_of(fits, most_ns);
    return {shift, fit(shift)};
  }

 private:
  double running(std::int64_t begin, std::int64_t end, std::size_t& from) const {
    while (from < busy_.size() && busy_[from].end_ns <= begin) ++from;
    std::int64_t ran = 0;
    for (std::size_t i = from; i < busy_.size() && busy_[i].begin_ns < end; ++i) {
      ran += std::min(end, busy_[i].end_ns) - std::max(begin, busy_[i].begin_ns);
    }
    return static_cast<double>(ran);
  }

  std::span<const Sample> samples_;
  std::span<const Interval> busy_;
};

// Those within the time that kernels ran in: elsewhere everything fits.
std::vector<Sample> usable(const std::vector<Sample>& activity, std::span<const Interval> busy) {
  std::vector<Sample> samples;
  if (busy.empty()) return samples;
  for (const Sample& sample : activity) {
    const bool within = sample.end_ns > busy.front().begin_ns && sample.begin_ns < busy.back().end_ns;
    if (within && sample.end_ns > sample.begin_ns) samples.push_back(sample);
  }
  std::ranges::sort(samples, {}, &Sample::begin_ns);
  if (samples.size() > kMostSamples) {
    const std::size_t surplus = samples.size() - kMostSamples;
    samples.erase(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(surplus / 2));
    samples.resize(kMostSamples);
  }
  return samples;
}

// So many samples of the middle, or a part of them, and the kernels around them.
UnmixInput part_of(const UnmixInput& input, UnmixSeries& metric, std::size_t from, std::size_t count) {
  UnmixInput part{{}, {}, input.kinds, input.estimated, input.clock_error_ns};
  const auto begin = input.samples.begin() + static_cast<std::ptrdiff_t>(from);
  part.samples.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
  const auto values = metric.counts.begin() + static_cast<std::ptrdiff_t>(from);
  metric.counts = std::vector<double>(values, values + static_cast<std::ptrdiff_t>(count));
  constexpr std::int64_t kAroundNs = 10'000'000;
  const std::int64_t first = part.samples.front().begin_ns - kAroundNs, last = part.samples.back().end_ns + kAroundNs;
  std::ranges::copy_if(input.intervals, std::back_inserter(part.intervals),
                       [&](const Interval& interval) { return interval.end_ns > first && interval.begin_ns < last; });
  return part;
}

}  // namespace

Alignment align_by_classes(const UnmixInput& input, const UnmixSeries& metric, std::int64_t most_ns) {
  constexpr std::size_t kMost = 6000, kLeast = 100;
  constexpr int kClassSteps = 20;
  constexpr double kLeastErrorNs = 2000;
  Alignment alignment;
  const std::size_t all = std::min(input.samples.size(), metric.counts.size());
  if (all < kLeast || !std::ranges::is_sorted(input.samples, {}, &Sample::begin_ns)) return alignment;
  const std::size_t count = std::min(all, kMost), from = (all - count) / 2;
  const double most = most_ns;
  const auto fits_of = [&](std::size_t begin, std::size_t size, const std::vector<std::int64_t>& shifts) {
    UnmixSeries values = metric;
    const UnmixInput part = part_of(input, values, begin, size);
    return explained_at(part, values, shifts);
  };
  const std::vector<std::int64_t> shifts = grid(most, kClassSteps);
  const double shift = top_of(fits_of(from, count, shifts), most);
  const double first = top_of(fits_of(from, count / 2, shifts), most);
  const double second = top_of(fits_of(from + count / 2, count - count / 2, shifts), most);
  const std::vector<double> fits = fits_of(from, count, {0, std::llround(shift)});
  alignment.fit = alignment.fit_unshifted = fits[0];
  const double apart = std::max(std::abs(first - shift), std::abs(second - shift));
  const bool agreed = fits[1] > kLeastFit && apart <= 2 * most / kClassSteps;
  alignment.certain = agreed && 1 - fits[1] < kClearlyBetter * (1 - fits[0]);
  alignment.error_ns = agreed ? std::max(kLeastErrorNs, apart) + (alignment.certain ? 0 : std::abs(shift)) : most;
  if (!alignment.certain) return alignment;
  alignment.shift_ns = shift;
  alignment.fit = fits[1];
  return alignment;
}

std::vector<Unmixed> unmix(const UnmixInput& input, const std::vector<UnmixSeries>& metrics) {
  std::vector<Unmixed> results = unmix_as_is(input, metrics);
  const auto best = std::ranges::max_element(results, {}, &Unmixed::explained);
  if (best == results.end()) return results;
  const Alignment found = align_by_classes(input, metrics[static_cast<std::size_t>(best - results.begin())]);
  const auto error_ns = static_cast<std::int64_t>(found.error_ns);
  if (error_ns == 0 || (!found.certain && error_ns >= input.clock_error_ns)) return results;
  UnmixInput moved = input;
  moved.clock_error_ns = std::min(input.clock_error_ns, error_ns);
  for (Sample& sample : moved.samples) {
    sample.begin_ns += std::llround(found.shift_ns);
    sample.end_ns += std::llround(found.shift_ns);
  }
  results = unmix_as_is(moved, metrics);
  for (Unmixed& result : results) result.shift_ns = found.shift_ns;
  return results;
}

Alignment align(const std::vector<Sample>& activity, const std::vector<Interval>& intervals, std::int64_t most_ns) {
  std::vector<Interval> ordered = intervals;
  std::ranges::sort(ordered, {}, &Interval::begin_ns);
  const std::vector<Interval> busy = merged(ordered);
  const std::vector<Sample> samples = usable(activity, busy);
  Alignment alignment;
  if (samples.size() < 16) return alignment;
  const double most = most_ns;
  const Search whole(samples, busy);
  alignment.fit_unshifted = whole.fit(0);
  alignment.fit = alignment.fit_unshifted;
  const auto [shift, fit] = whole.best(most);
  // Both halves of the time must say the same, or it is chance.
  const std::span all(samples);
  const double first = Search(all.first(all.size() / 2), busy).best(most).first;
  const double second = Search(all.subspan(all.size() / 2), busy).best(most).first;
  const double agreed = std::max(2 * most / kSteps, std::abs(shift) / 4);
  const auto unexplained = [](double correlation) { return 1 - correlation * std::abs(correlation); };
  alignment.certain = fit > kLeastFit && std::abs(first - shift) <= agreed && std::abs(second - shift) <= agreed &&
                      unexplained(fit) < kClearlyBetter * unexplained(alignment.fit_unshifted);
  if (!alignment.certain) return alignment;
  alignment.shift_ns = shift;
  alignment.fit = fit;
  return alignment;
}

}  // namespace llmprof::analyze::counters
