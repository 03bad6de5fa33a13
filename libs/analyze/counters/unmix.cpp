#include "analyze/counters/unmix.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace llmprof::analyze::counters {

namespace {

constexpr std::size_t kMostBlocks = 200, kLeastBlock = 8;  // of samples: noise of neighbours is not independent
constexpr double kTwoSided95 = 2.0;                        // standard deviations
constexpr double kSameColumn = 1e-6;  // part of a column that the others do not explain: less is a fixed proportion

// What the normal equations need of one metric and one residency.
struct Equations {
  SquareMatrix gram;
  std::vector<double> right;

  Equations(const Residency& residency, const std::vector<double>& counts)
      : gram(residency.columns()), right(residency.columns(), 0) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (!std::isfinite(counts[i])) continue;
      const std::span<const Share> shares = residency.of(i);
      for (const Share& a : shares) {
        const auto row = static_cast<std::size_t>(a.column);
        right[row] += a.seconds * counts[i];
        for (const Share& b : shares) gram.at(row, static_cast<std::size_t>(b.column)) += a.seconds * b.seconds;
      }
    }
  }
};

// How far the fit is off, sample by sample: scores by block, for errors that hold whatever the noise depends on.
class Residuals {
 public:
  Residuals(const Residency& residency, const std::vector<double>& counts, const std::vector<double>& rates) {
    const auto finite =
        static_cast<std::size_t>(std::ranges::count_if(counts, [](double count) { return std::isfinite(count); }));
    const std::size_t block = std::max(kLeastBlock, finite / kMostBlocks + 1);
    const double mean = mean_of(counts, finite);
    double left = 0, all = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (!std::isfinite(counts[i])) continue;
      if (used_++ % block == 0) scores_.emplace_back(rates.size(), 0.0);
      double off = counts[i];
      for (const Share& share : residency.of(i)) off -= share.seconds * rates[share.column];
      for (const Share& share : residency.of(i)) {
        scores_.back()[share.column] += share.seconds * off;
      }
      left += off * off;
      all += (counts[i] - mean) * (counts[i] - mean);
    }
    explained_ = all > 0 ? 1 - left / all : 0;
  }

  std::size_t used() const { return used_; }
  double explained() const { return explained_; }

  // Of the estimate that is `weights` times the right sides of `columns`.
  double deviation(const std::vector<double>& weights, const std::vector<std::size_t>& columns) const {
    const double blocks = scores_.size();
    const double free = std::max(1.0, blocks - static_cast<double>(columns.size()) / kLeastBlock);
    double sum = 0;
    for (const std::vector<double>& score : scores_) {
      double move = 0;
      for (std::size_t k = 0; k < columns.size(); ++k) move += weights[k] * score[columns[k]];
      sum += move * move;
    }
    return std::sqrt(sum * blocks / free);
  }

 private:
  static double mean_of(const std::vector<double>& counts, std::size_t finite) {
    double sum = 0;
    for (const double count : counts) sum += std::isfinite(count) ? count : 0;
    return finite > 0 ? sum / static_cast<double>(finite) : 0;
  }

  std::vector<std::vector<double>> scores_;
  std::size_t used_ = 0;
  double explained_ = 0;
};

// Part of each column that the others do not explain.
std::vector<double> own_parts(const SquareMatrix& gram) {
  SquareMatrix padded = gram;
  for (std::size_t i = 0; i < gram.size(); ++i) padded.at(i, i) += 1e-8 * gram.at(i, i) + (gram.at(i, i) <= 0 ? 1 : 0);
  std::vector<double> parts(gram.size(), 0);
  const auto factor = cholesky(padded);
  if (!factor) return parts;
  const SquareMatrix inverted = inverse(*factor);
  for (std::size_t i = 0; i < gram.size(); ++i) parts[i] = 1 / (inverted.at(i, i) * padded.at(i, i));
  return parts;
}

// The estimate of one column among the chosen ones, whether it is held at 0 or not: value and standard deviation.
std::pair<double, double> free_estimate(std::size_t column, std::vector<std::size_t> chosen, const Equations& equations,
                                        const Residuals& residuals) {
  if (std::ranges::find(chosen, column) == chosen.end()) chosen.push_back(column);
  const auto factor = cholesky(equations.gram.part(chosen));
  if (!factor) return {0, 0};
  std::vector<double> unit(chosen.size(), 0);
  unit[static_cast<std::size_t>(std::ranges::find(chosen, column) - chosen.begin())] = 1;
  const std::vector<double> weights = solve(*factor, std::move(unit));
  double value = 0;
  for (std::size_t k = 0; k < chosen.size(); ++k) value += weights[k] * equations.right[chosen[k]];
  return {value, residuals.deviation(weights, chosen)};
}

struct Column {
  double rate = 0, error = 0;
  bool told_apart = true;
};

struct Fit {
  std::vector<Column> columns;
  std::size_t used = 0;
  double explained = 0;
};

// Classes in a fixed proportion: each may have all that they have together.
void widen_inseparable(std::vector<Column>& columns, const std::vector<double>& parts,
                       const std::vector<double>& seconds) {
  double together = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (parts[i] < kSameColumn) together += columns[i].rate * seconds[i];
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (parts[i] >= kSameColumn || seconds[i] <= 0) continue;
    columns[i].told_apart = false;
    columns[i].error = std::max({columns[i].error, columns[i].rate, together / seconds[i] - columns[i].rate});
  }
}

// An error above the value and above what the device does on average says nothing about the class.
void mark_unknown(std::vector<Column>& columns, const std::vector<double>& seconds) {
  double counted = 0, time = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) counted += columns[i].rate * seconds[i], time += seconds[i];
  const double mean = time > 0 ? counted / time : 0;
  for (Column& column : columns) {
    if (column.error > column.rate && column.error > mean) column.told_apart = false;
  }
}

class Unmixer {
 public:
  explicit Unmixer(const UnmixInput& input);
  Unmixer(const UnmixInput& input, const std::vector<std::int64_t>& shifts_ns) : Unmixer(input, Prepared{}) {
    look_from(shifts_ns);
  }
  std::vector<double> explained(const UnmixSeries& metric) const;  // by each residency
  Unmixed run(const UnmixSeries& metric) const;

 private:
  struct Prepared {};
  Unmixer(const UnmixInput& input, Prepared);
  void look_from(const std::vector<std::int64_t>& shifts_ns);
  std::vector<double> in_order(const UnmixSeries& metric) const;
  void choose_columns(std::int32_t kinds);
  Fit fit(const std::vector<double>& counts) const;
  std::int64_t doubt_ns(const UnmixInput& input) const;

  std::vector<Interval> intervals_;
  std::vector<std::size_t> order_;  // of the samples by their begin
  std::vector<Sample> samples_;
  std::vector<double> seconds_;          // of each kind
  std::vector<std::int32_t> heavy_;      // kinds with a column of their own
  std::vector<std::int32_t> column_of_;  // of each kind
  std::vector<Residency> residencies_;   // as they are, and with the clock off either way
};

Unmixer::Unmixer(const UnmixInput& input) : Unmixer(input, Prepared{}) {
  const std::int64_t doubt = doubt_ns(input);
  look_from({0, -doubt, doubt});
}

Unmixer::Unmixer(const UnmixInput& input, Prepared) : intervals_(input.intervals), order_(input.samples.size()) {
  std::erase_if(intervals_, [&](const Interval& interval) {
    return interval.end_ns <= interval.begin_ns || interval.kind < 0 || interval.kind >= input.kinds;
  });
  std::ranges::sort(intervals_, {}, &Interval::begin_ns);
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::ranges::sort(order_, {}, [&](std::size_t i) { return input.samples[i].begin_ns; });
  for (const std::size_t i : order_) samples_.push_back(input.samples[i]);
  seconds_ = seconds_by_kind(samples_, intervals_, std::max(input.kinds, 0));
  choose_columns(std::max(input.kinds, 0));
}

void Unmixer::look_from(const std::vector<std::int64_t>& shifts_ns) {
  for (const std::int64_t shift : shifts_ns) residencies_.emplace_back(samples_, intervals_, column_of_, shift);
}

void Unmixer::choose_columns(std::int32_t kinds) {
  for (std::int32_t kind = 0; kind < kinds; ++kind) {
    if (seconds_[static_cast<std::size_t>(kind)] > 0) heavy_.push_back(kind);
  }
  std::ranges::sort(heavy_, std::greater(),
                    [&](std::int32_t kind) { return seconds_[static_cast<std::size_t>(kind)]; });
  if (heavy_.size() > static_cast<std::size_t>(kMostKinds)) heavy_.resize(kMostKinds);
  column_of_.assign(static_cast<std::size_t>(kinds), static_cast<std::int32_t>(heavy_.size()));
  for (std::size_t i = 0; i < heavy_.size(); ++i) {
    column_of_[heavy_[i]] = static_cast<std::int32_t>(i);
  }
  column_of_.push_back(static_cast<std::int32_t>(heavy_.size()));  // the rest has a column even where there is none
}

// Kernels that were placed by their usual length may be off by about one of them.
std::int64_t Unmixer::doubt_ns(const UnmixInput& input) const {
  if (!input.estimated || intervals_.empty()) return input.clock_error_ns;
  double sum = 0;
  for (const Interval& interval : intervals_) sum += interval.end_ns - interval.begin_ns;
  return std::max(input.clock_error_ns, static_cast<std::int64_t>(sum / static_cast<double>(intervals_.size())));
}

Fit Unmixer::fit(const std::vector<double>& counts) const {
  const Residency& residency = residencies_.front();
  const Equations equations(residency, counts);
  const Nnls solution = nnls(equations.gram, equations.right);
  const Residuals residuals(residency, counts, solution.x);
  Fit fit;
  fit.used = residuals.used();
  fit.explained = residuals.explained();
  fit.columns.resize(solution.x.size());
  std::vector<std::size_t> every;
  for (std::size_t i = 0; i < solution.x.size(); ++i) {
    if (equations.gram.at(i, i) > 0) every.push_back(i);
  }
  for (std::size_t i = 0; i < solution.x.size(); ++i) {
    const auto [value, among_chosen] = free_estimate(i, solution.chosen, equations, residuals);
    // What was held at 0 need not be there, and pushes the others: as if everything were free, where that can be said.
    const auto [unbound, among_all] = free_estimate(i, every, equations, residuals);
    const double deviation = std::max(among_chosen, among_all);
    const double pushed = among_all > 0 ? solution.x[i] - unbound : 0;
    fit.columns[i].rate = solution.x[i];
    // Held at 0, it is at most what it would be if it were free.
    fit.columns[i].error = solution.x[i] > 0 ? std::hypot(kTwoSided95 * deviation, pushed)
                                             : std::max(value + kTwoSided95 * deviation, deviation);
  }
  std::vector<double> off(fit.columns.size(), 0);
  for (std::size_t other = 1; other < residencies_.size(); ++other) {
    const Equations moved(residencies_[other], counts);
    const Nnls then = nnls(moved.gram, moved.right);
    for (std::size_t i = 0; i < off.size(); ++i) off[i] = std::max(off[i], std::abs(then.x[i] - solution.x[i]));
  }
  for (std::size_t i = 0; i < off.size(); ++i) fit.columns[i].error = std::hypot(fit.columns[i].error, off[i]);
  widen_inseparable(fit.columns, own_parts(equations.gram), residency.totals());
  mark_unknown(fit.columns, residency.totals());
  return fit;
}

std::vector<double> Unmixer::in_order(const UnmixSeries& metric) const {
  std::vector<double> counts;
  for (const std::size_t i : order_) counts.push_back(i < metric.counts.size() ? metric.counts[i] : std::nan(""));
  return counts;
}

std::vector<double> Unmixer::explained(const UnmixSeries& metric) const {
  const std::vector<double> counts = in_order(metric);
  std::vector<double> parts;
  for (const Residency& residency : residencies_) {
    const Equations equations(residency, counts);
    parts.push_back(Residuals(residency, counts, nnls(equations.gram, equations.right).x).explained());
  }
  return parts;
}

Unmixed Unmixer::run(const UnmixSeries& metric) const {
  const Fit fit = this->fit(in_order(metric));
  const std::vector<double>& totals = residencies_.front().totals();
  const auto rate_of = [&](std::size_t column, std::int32_t kind) {
    const Column& found = fit.columns[column];
    return UnmixedRate{kind, found.rate, found.error, std::llround(totals[column] * 1e9), found.told_apart};
  };
  Unmixed unmixed;
  unmixed.samples = static_cast<std::int64_t>(fit.used);
  unmixed.explained = fit.explained;
  for (std::size_t i = 0; i < heavy_.size(); ++i) unmixed.kinds.push_back(rate_of(i, heavy_[i]));
  std::ranges::sort(unmixed.kinds, {}, &UnmixedRate::kind);
  unmixed.other = rate_of(heavy_.size(), -1);
  unmixed.idle = rate_of(heavy_.size() + 1, -1);
  return unmixed;
}

}  // namespace

std::vector<Unmixed> unmix_as_is(const UnmixInput& input, const std::vector<UnmixSeries>& metrics) {
  const Unmixer unmixer(input);
  std::vector<Unmixed> results;
  for (const UnmixSeries& metric : metrics) results.push_back(unmixer.run(metric));
  return results;
}

std::vector<double> explained_at(const UnmixInput& input, const UnmixSeries& metric,
                                 const std::vector<std::int64_t>& shifts_ns) {
  return Unmixer(input, shifts_ns).explained(metric);
}

Unmixed unmix(const UnmixInput& input) {
  UnmixSeries series;
  for (const Sample& sample : input.samples) series.counts.push_back(sample.count);
  return Unmixer(input).run(series);
}

namespace {

// Calls `take(sample, seconds)` for every sample that the interval reaches into. Intervals come in order of their
// begin, so `from` only moves on.
template <class Take>
void over_samples(std::span<const Sample> samples, const Interval& interval, std::int64_t shift_ns, std::size_t& from,
                  Take&& take) {
  const std::int64_t begin = interval.begin_ns - shift_ns, end = interval.end_ns - shift_ns;
  while (from < samples.size() && samples[from].end_ns <= begin) ++from;
  for (std::size_t i = from; i < samples.size() && samples[i].begin_ns < end; ++i) {
    const std::int64_t ran = std::min(end, samples[i].end_ns) - std::max(begin, samples[i].begin_ns);
    if (ran > 0) take(i, static_cast<double>(ran) * 1e-9);
  }
}

struct Entry {
  std::uint32_t sample = 0;
  Share share;
};

std::vector<Entry> entries_of(std::span<const Sample> samples, std::span<const Interval> intervals,
                              std::span<const std::int32_t> column_of, std::int64_t shift_ns) {
  std::vector<Entry> entries;
  entries.reserve(intervals.size() + samples.size());
  std::size_t from = 0;
  for (const Interval& interval : intervals) {
    const std::int32_t column = column_of[interval.kind];
    over_samples(samples, interval, shift_ns, from, [&](std::size_t sample, double seconds) {
      entries.push_back({static_cast<std::uint32_t>(sample), {column, seconds}});
    });
  }
  return entries;
}

std::vector<double> busy_seconds(std::span<const Sample> samples, std::span<const Interval> intervals,
                                 std::int64_t shift_ns) {
  std::vector<double> busy(samples.size(), 0);
  std::size_t from = 0;
  for (const Interval& interval : merged(intervals)) {
    over_samples(samples, interval, shift_ns, from, [&](std::size_t i, double seconds) { busy[i] += seconds; });
  }
  return busy;
}

double seconds_of(const Sample& sample) { return static_cast<double>(sample.end_ns - sample.begin_ns) * 1e-9; }

}  // namespace

std::vector<Interval> merged(std::span<const Interval> intervals) {
  std::vector<Interval> busy;
  for (const Interval& interval : intervals) {
    if (busy.empty() || interval.begin_ns > busy.back().end_ns) {
      busy.push_back(interval);
    } else {
      busy.back().end_ns = std::max(busy.back().end_ns, interval.end_ns);
    }
  }
  return busy;
}

std::vector<double> seconds_by_kind(std::span<const Sample> samples, std::span<const Interval> intervals,
                                    std::int32_t kinds) {
  std::vector<double> seconds(static_cast<std::size_t>(kinds), 0);
  std::size_t from = 0;
  for (const Interval& interval : intervals) {
    double& sum = seconds[interval.kind];
    over_samples(samples, interval, 0, from, [&](std::size_t, double ran) { sum += ran; });
  }
  return seconds;
}

Residency::Residency(std::span<const Sample> samples, std::span<const Interval> intervals,
                     std::span<const std::int32_t> column_of, std::int64_t shift_ns) {
  const std::int32_t idle = column_of.empty() ? 0 : *std::ranges::max_element(column_of) + 1;
  totals_.assign(static_cast<std::size_t>(idle) + 1, 0);
  const std::vector<Entry> entries = entries_of(samples, intervals, column_of, shift_ns);
  std::vector<std::size_t> next(samples.size() + 1, 0);
  for (const Entry& entry : entries) ++next[entry.sample + 1];
  for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  std::vector<Share> ordered(entries.size());
  const std::vector<std::size_t> begins = next;
  for (const Entry& entry : entries) ordered[next[entry.sample]++] = entry.share;
  const std::vector<double> busy = busy_seconds(samples, intervals, shift_ns);
  std::vector<double> sums(totals_.size(), 0);
  first_.push_back(0);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (std::size_t j = begins[i]; j < begins[i + 1]; ++j) sums[ordered[j].column] += ordered[j].seconds;
    sums.back() += std::max(0.0, seconds_of(samples[i]) - busy[i]);
    for (std::size_t column = 0; column < sums.size(); ++column) {
      if (sums[column] <= 0) continue;
      shares_.push_back({static_cast<std::int32_t>(column), sums[column]});
      totals_[column] += sums[column];
      sums[column] = 0;
    }
    first_.push_back(shares_.size());
  }
}

}  // namespace llmprof::analyze::counters
