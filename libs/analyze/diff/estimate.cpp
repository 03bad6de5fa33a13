#include "analyze/diff/digest.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace llmprof::analyze {
namespace {

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double variance(std::span<const double> values) {  // of the population they are drawn from
  const double middle = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - middle) * (value - middle);
  return sum / static_cast<double>(values.size() - 1);
}

// Correlation of neighbours.
double correlation(std::span<const double> values) {
  const double middle = mean(values);
  double together = 0, own = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    own += (values[i] - middle) * (values[i] - middle);
    if (i > 0) together += (values[i] - middle) * (values[i - 1] - middle);
  }
  return own > 0 ? together / own : 0;
}

void join_neighbours(std::vector<double>& batches) {
  for (std::size_t i = 0; i + 1 < batches.size(); i += 2) batches[i / 2] = (batches[i] + batches[i + 1]) / 2;
  batches.resize(batches.size() / 2);  // an odd one is left out of the error; the mean was taken before
}

// The standard error of the mean of the batches' values.
void set_error(std::vector<double> batches, Estimate& estimate) {
  if (batches.size() < kLeastBatches) return;
  constexpr double kCorrelated = 0.1, kMost = 0.9;
  double neighbours = correlation(batches);
  while (neighbours > kCorrelated && batches.size() / 2 >= kLeastBatches) {
    join_neighbours(batches);
    neighbours = correlation(batches);
  }
  const double count = batches.size();
  // An estimated correlation of n values is 1/n too low on average; of n that are not correlated it is -1/n.
  const double left = std::clamp(neighbours + 1 / count, 0.0, kMost);
  estimate.error = std::sqrt(variance(batches) / count * (1 + left) / (1 - left));
  estimate.freedom = count - 1;
}

template <class Value>
std::vector<double> per_batch(std::span<const double> samples, std::size_t batches, const Value& value) {
  std::vector<double> values;
  for (std::size_t i = 0; i < batches; ++i) {
    const std::size_t begin = i * samples.size() / batches, end = (i + 1) * samples.size() / batches;
    values.push_back(value(samples.subspan(begin, end - begin)));
  }
  return values;
}

double observed_quantile(std::span<const double> samples, double q) {
  std::vector<double> sorted(samples.begin(), samples.end());
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(rank, 1) - 1);
  std::nth_element(sorted.begin(), at, sorted.end());
  return *at;
}

// The continued fraction of the incomplete beta function (Lentz).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  const auto kept = [](double value) { return std::fabs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / kept(1 - (a + b) * x / (a + 1)), result = d;
  for (int m = 1; m < 300; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / kept(1 + even * d);
    c = kept(1 + even / c);
    result *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / kept(1 + odd * d);
    c = kept(1 + odd / c);
    result *= d * c;
    if (std::fabs(d * c - 1) < 1e-12) break;
  }
  return result;
}

double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log(1 - x));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

struct Log {  // of a side: the error of the logarithm of its mean
  double error = 0, freedom = 0;
};

std::optional<Log> log_of(const Estimate& side) {
  if (!side.error || side.value <= 0) return std::nullopt;
  return Log{*side.error / side.value, side.freedom};
}

// A single run among repeats: what other runs would have shown is unknown, the other side's spread stands in for it.
void take_over_spread(Estimate& single, const Estimate& repeats) {
  if (!repeats.error || repeats.value <= 0) return;
  const double spread = *repeats.error * std::sqrt(static_cast<double>(repeats.samples)) / repeats.value * single.value;
  if (single.error && *single.error >= spread) return;
  single.error = spread;
  single.freedom = repeats.freedom;
}

}  // namespace

Estimate mean_of_batches(std::vector<double> batches) {
  Estimate estimate;
  estimate.samples = std::ssize(batches);
  if (batches.empty()) return estimate;
  estimate.value = mean(batches);
  set_error(std::move(batches), estimate);
  return estimate;
}

Estimate mean_of_samples(std::span<const double> samples) {
  if (samples.empty()) return {};
  Estimate estimate = mean_of_batches(per_batch(samples, std::min(samples.size(), kMostBatches), mean));
  estimate.value = mean(samples);
  estimate.samples = std::ssize(samples);
  return estimate;
}

Estimate quantile_of_samples(std::span<const double> samples, double q) {
  Estimate estimate;
  estimate.samples = std::ssize(samples);
  if (samples.empty()) return estimate;
  estimate.value = observed_quantile(samples, q);
  // A batch has to hold one sample beyond the quantile on average, and three at all; of few samples the median alone
  // can be judged, each being a batch: the error of a median is sqrt(pi / 2) that of the mean of normal samples.
  const auto least = static_cast<std::size_t>(std::max(3.0, std::ceil(1 / (1 - q))));
  std::size_t batches = std::min(samples.size() / least, kMostBatches);
  const bool single = batches < kLeastBatches && q == 0.5;
  if (single) batches = samples.size();
  if (batches < kLeastBatches) return estimate;
  set_error(per_batch(samples, batches, [&](std::span<const double> part) { return observed_quantile(part, q); }),
            estimate);
  if (single) *estimate.error *= 1.2533;
  return estimate;
}

Estimate mean_of_runs(std::span<const Estimate> runs) {
  if (runs.empty()) return {};
  if (runs.size() == 1) return runs.front();
  std::vector<double> values;
  double within = 0;
  bool counted = true;
  for (const Estimate& run : runs) {
    values.push_back(run.value);
    within += run.error.value_or(0) * run.error.value_or(0);
    counted = counted && run.error == 0.0;
  }
  const double count = runs.size();
  const double between = variance(values) / count;
  Estimate estimate{mean(values), std::nullopt, count - 1, std::ssize(runs)};
  // Two or three runs may agree by chance: the mean cannot be known better than its runs were.
  estimate.error = std::sqrt(std::max(between, within / (count * count)));
  if (!counted && *estimate.error == 0) estimate.error.reset();
  return estimate;
}

Change change_between(std::span<const Estimate> before, std::span<const Estimate> after) {
  Change change;
  if (before.empty() || after.empty()) return change;
  Estimate a = mean_of_runs(before), b = mean_of_runs(after);
  if (before.size() == 1 && after.size() > 1) take_over_spread(a, b);
  if (after.size() == 1 && before.size() > 1) take_over_spread(b, a);
  if (a.value == 0) return change;
  change.ratio = b.value / a.value - 1;
  const std::optional<Log> x = log_of(a), y = log_of(b);
  if (!x || !y) return change;
  const double square = x->error * x->error + y->error * y->error;
  if (square == 0) {
    change.low = change.high = change.ratio;
    change.p = a.value == b.value ? 1 : 0;
    return change;
  }
  const auto fourth = [](const Log& side) { return side.freedom > 0 ? std::pow(side.error, 4) / side.freedom : 0; };
  const double freedom = square * square / (fourth(*x) + fourth(*y));
  const double error = std::sqrt(square), distance = std::log(b.value / a.value);
  const double half = student_t95(freedom) * error;
  change.low = std::expm1(distance - half);
  change.high = std::expm1(distance + half);
  change.p = student_p(distance / error, freedom);
  return change;
}

double student_p(double t, double freedom) { return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)); }

double student_t95(double freedom) {
  double low = 0, high = 1000;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (student_p(middle, freedom) > 0.05 ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace llmprof::analyze
