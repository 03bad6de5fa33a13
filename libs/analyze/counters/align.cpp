#include "analyze/counters/align.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>

#include "analyze/counters/residency.h"

namespace llmprof::analyze::counters {
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
  const auto middle = static_cast<double>(fits.size() / 2);
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
      const auto length = static_cast<double>(sample.end_ns - sample.begin_ns);
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
  const auto most = static_cast<double>(most_ns);
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
  const auto most = static_cast<double>(most_ns);
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
