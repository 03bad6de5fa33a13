#include "analyze/energy.h"

#include <algorithm>
#include <cmath>

namespace llmprof::analyze {
namespace {

constexpr std::int64_t kLongestSegmentNs = 2'000'000'000;  // longer ones are a pause of the reader, not a reading

std::int64_t median(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Usual time from one change of the value to the next.
std::int64_t change_ns(const Series& series) {
  std::vector<std::int64_t> times;
  std::int64_t last_ns = 0;
  for (std::size_t i = 1; i < series.size(); ++i) {
    if (series[i].value == series[i - 1].value) continue;
    if (last_ns != 0) times.push_back(series[i].ts_ns - last_ns);
    last_ns = series[i].ts_ns;
  }
  return median(std::move(times));
}

std::int64_t usual_period_ns(const Series& series) {
  std::vector<std::int64_t> times;
  for (std::size_t i = 1; i < series.size(); ++i) times.push_back(series[i].ts_ns - series[i - 1].ts_ns);
  return median(std::move(times));
}

template <class Joules>
EnergySegments segments_of(const Series& series, const Joules& joules) {
  EnergySegments out;
  const std::int64_t period_ns = usual_period_ns(series);
  out.blur_ns = std::max(period_ns, change_ns(series));
  const std::int64_t longest_ns = std::max(kLongestSegmentNs, 5 * period_ns);
  for (std::size_t i = 1; i < series.size(); ++i) {
    const SeriesPoint& a = series[i - 1];
    const SeriesPoint& b = series[i];
    if (b.ts_ns <= a.ts_ns || b.ts_ns - a.ts_ns > longest_ns) continue;
    const double amount = joules(a, b);
    if (amount >= 0) out.segments.push_back({a.ts_ns, b.ts_ns, amount});
  }
  return out;
}

double watts_of(const EnergySegment& segment) {
  return segment.joules / (static_cast<double>(segment.end_ns - segment.begin_ns) * 1e-9);
}

// The highest less the lowest power of the run. Counters move in steps, so single segments say too much: those of a few
// blurs together.
double swing_watts(const EnergySegments& energy) {
  double lowest = INFINITY, highest = 0;
  EnergySegment sum;
  for (const EnergySegment& segment : energy.segments) {
    if (sum.end_ns != segment.begin_ns) sum = {segment.begin_ns, segment.begin_ns, 0};
    sum.end_ns = segment.end_ns;
    sum.joules += segment.joules;
    if (sum.end_ns - sum.begin_ns < 3 * energy.blur_ns) continue;
    lowest = std::min(lowest, watts_of(sum));
    highest = std::max(highest, watts_of(sum));
    sum = {sum.end_ns, sum.end_ns, 0};
  }
  return highest > 0 ? highest - lowest : 0;
}

}  // namespace

EnergySegments segments_of_counter(const Series& joules) {
  return segments_of(joules, [](const SeriesPoint& a, const SeriesPoint& b) { return b.value - a.value; });
}

EnergySegments segments_of_power(const Series& watts) {
  return segments_of(watts, [](const SeriesPoint& a, const SeriesPoint& b) {
    return (a.value + b.value) / 2 * static_cast<double>(b.ts_ns - a.ts_ns) * 1e-9;
  });
}

EnergyOver energy_over(const EnergySegments& energy, const std::vector<Window>& windows) {
  EnergyOver out;
  auto segment = energy.segments.begin();
  for (const Window& window : windows) {
    while (segment != energy.segments.end() && segment->end_ns <= window.begin_ns) ++segment;
    for (auto at = segment; at != energy.segments.end() && at->begin_ns < window.end_ns; ++at) {
      const std::int64_t inside = std::min(at->end_ns, window.end_ns) - std::max(at->begin_ns, window.begin_ns);
      if (inside <= 0) continue;
      out.covered_ns += inside;
      out.joules += at->joules * static_cast<double>(inside) / static_cast<double>(at->end_ns - at->begin_ns);
    }
  }
  double squares = 0;
  const auto add_edge = [&](std::int64_t gap_ns) {
    const double seconds = static_cast<double>(std::min(gap_ns, energy.blur_ns)) * 1e-9 / 2;
    squares += seconds * seconds;
  };
  for (std::size_t i = 0; i < windows.size(); ++i) {
    add_edge(i == 0 ? INT64_MAX : windows[i].begin_ns - windows[i - 1].end_ns);
    add_edge(i + 1 == windows.size() ? INT64_MAX : windows[i + 1].begin_ns - windows[i].end_ns);
  }
  out.error_j = swing_watts(energy) * std::sqrt(squares);
  return out;
}

}  // namespace llmprof::analyze
