#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace llmprof::bench {
namespace {

constexpr double kNormal95 = 1.959963984540054;  // two-sided

std::vector<double> sorted_copy(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// How many of the sorted samples lie below the interval on each side: [x(r), x(n-1-r)] holds the median with 95 % or
// more, because the number of samples under the median is binomial(n, 1/2). 0 also when even min to max is less than
// that (n < 6).
std::size_t median_interval_rank(std::size_t count) {
  const auto n = static_cast<double>(count);
  if (count > 200) return static_cast<std::size_t>(n / 2 - kNormal95 / 2 * std::sqrt(n));
  double probability = std::pow(0.5, n),
         below = probability;  // of exactly k, and of at most k samples under the median
  std::size_t k = 0;
  for (; below <= 0.025; below += probability) {
    probability *= (n - static_cast<double>(k)) / (static_cast<double>(k) + 1);
    ++k;
  }
  return k == 0 ? 0 : k - 1;
}

struct Interval {
  double low, high;
};

Interval median_interval(std::span<const double> sorted) {
  const std::size_t rank = median_interval_rank(sorted.size());
  return {sorted[rank], sorted[sorted.size() - 1 - rank]};
}

double mean_of(std::span<const double> samples) {
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

double deviation_of(std::span<const double> samples, double mean) {
  if (samples.size() < 2) return 0;
  double squares = 0;
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  return std::sqrt(squares / static_cast<double>(samples.size() - 1));
}

// Ranks of a (from 1, ties share their mean) summed, and the sum of t^3 - t over groups of t equal values.
struct RankSum {
  double of_a = 0;
  double ties = 0;
};

RankSum rank_sum(std::span<const double> a, std::span<const double> b) {
  std::vector<std::pair<double, bool>> all;  // value, is of a
  all.reserve(a.size() + b.size());
  for (const double value : a) all.emplace_back(value, true);
  for (const double value : b) all.emplace_back(value, false);
  std::sort(all.begin(), all.end());
  RankSum sum;
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].first == all[begin].first) ++end;
    const double rank = static_cast<double>(begin + 1 + end) / 2;
    for (std::size_t i = begin; i < end; ++i) sum.of_a += all[i].second ? rank : 0;
    const auto equal = static_cast<double>(end - begin);
    sum.ties += equal * equal * equal - equal;
  }
  return sum;
}

// Two-sided, by the normal approximation with correction for ties and continuity.
double mann_whitney(std::span<const double> a, std::span<const double> b) {
  const auto n_a = static_cast<double>(a.size()), n_b = static_cast<double>(b.size()), n = n_a + n_b;
  const RankSum ranks = rank_sum(a, b);
  const double u = ranks.of_a - n_a * (n_a + 1) / 2;
  const double variance = n_a * n_b / 12 * ((n + 1) - ranks.ties / (n * (n - 1)));
  const double distance = std::abs(u - n_a * n_b / 2) - 0.5;
  if (distance <= 0 || variance <= 0) return 1;
  return std::erfc(distance / std::sqrt(variance) / std::sqrt(2.0));
}

// The intervals of the two medians as standard errors of their logarithms, added as independent errors are.
Interval ratio_interval(double ratio, Interval a, Interval b) {
  const double of_a = std::log(a.high / a.low) / 2, of_b = std::log(b.high / b.low) / 2;
  const double factor = std::exp(std::hypot(of_a, of_b));
  return {ratio / factor, ratio * factor};
}

}  // namespace

double quantile(std::span<const double> sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto index = static_cast<std::size_t>(position);
  if (index + 1 >= sorted.size()) return sorted.back();
  return std::lerp(sorted[index], sorted[index + 1], position - static_cast<double>(index));
}

Statistics statistics(std::span<const double> samples) {
  const std::vector<double> sorted = sorted_copy(samples);
  const double mean = mean_of(sorted);
  const Interval interval = median_interval(sorted);
  return {.count = sorted.size(),
          .mean = mean,
          .median = quantile(sorted, 0.5),
          .min = sorted.front(),
          .max = sorted.back(),
          .deviation = deviation_of(sorted, mean),
          .p5 = quantile(sorted, 0.05),
          .p95 = quantile(sorted, 0.95),
          .p99 = quantile(sorted, 0.99),
          .low = interval.low,
          .high = interval.high};
}

Comparison compare(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> sorted_a = sorted_copy(a), sorted_b = sorted_copy(b);
  const double ratio = quantile(sorted_b, 0.5) / quantile(sorted_a, 0.5);
  const Interval interval = ratio_interval(ratio, median_interval(sorted_a), median_interval(sorted_b));
  return {.ratio = ratio, .low = interval.low, .high = interval.high, .p = mann_whitney(sorted_a, sorted_b)};
}

std::vector<double> adjusted(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return p[i] > p[j]; });
  std::vector<double> result(p.size());
  double least = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {  // from the largest, which has rank n
    const auto rank = static_cast<double>(order.size() - i);
    least = std::min(least, p[order[i]] * static_cast<double>(p.size()) / rank);
    result[order[i]] = least;
  }
  return result;
}

}  // namespace llmprof::bench
