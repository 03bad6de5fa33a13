#include "analyze/counters/align.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "analyze/counters/residency.h"

namespace llmprof::analyze::counters {
namespace {

constexpr std::size_t kMostSamples = 20'000;  // more says nothing new about one number
constexpr int kSteps = 30;                    // of the search, to either side
constexpr double kLeastFit = 0.3;
constexpr double kClearlyBetter = 0.9;  // of what was unexplained before

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

  // The best shift on a grid, refined by the parabola through it and its neighbours.
  std::pair<double, double> best(double most_ns) const {
    const double step = most_ns / kSteps;
    std::vector<double> fits;
    for (int i = -kSteps; i <= kSteps; ++i) fits.push_back(fit(i * step));
    const auto top = static_cast<std::size_t>(std::ranges::max_element(fits) - fits.begin());
    double shift = (static_cast<double>(top) - kSteps) * step;
    if (top > 0 && top + 1 < fits.size()) {
      const double bend = fits[top - 1] - 2 * fits[top] + fits[top + 1];
      if (bend < 0) shift += step * std::clamp(0.5 * (fits[top - 1] - fits[top + 1]) / bend, -0.5, 0.5);
    }
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

}  // namespace

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
