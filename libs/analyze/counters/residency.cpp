#include "analyze/counters/residency.h"

#include <algorithm>

namespace llmprof::analyze::counters {
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
    const std::int32_t column = column_of[static_cast<std::size_t>(interval.kind)];
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
    double& sum = seconds[static_cast<std::size_t>(interval.kind)];
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
    for (std::size_t j = begins[i]; j < begins[i + 1]; ++j)
      sums[static_cast<std::size_t>(ordered[j].column)] += ordered[j].seconds;
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
