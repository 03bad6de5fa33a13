#include "serving/quantiles.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace llmprof::serving {
namespace {

double interpolated(const std::vector<double>& sorted, double part) {
  const double place = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Distribution distribution_of(std::vector<double> values) {
  Distribution out;
  if (values.empty()) return out;
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += value;
  out.count = static_cast<std::int64_t>(values.size());
  out.mean = sum / static_cast<double>(values.size());
  out.p50 = interpolated(values, 0.50);
  out.p90 = interpolated(values, 0.90);
  out.p95 = interpolated(values, 0.95);
  out.p99 = interpolated(values, 0.99);
  out.max = values.back();
  return out;
}

std::size_t Samples::bin_of(double value) {
  // Exponent and leading mantissa bits of a double are its logarithm, piecewise linear: one shift instead of a log().
  if (!(value >= 1)) return 0;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value) - std::bit_cast<std::uint64_t>(1.0);
  const auto bin = static_cast<std::size_t>(bits >> (52 - kMantissaBits)) + 1;
  return std::min(bin, (std::size_t{kDoublings} << kMantissaBits));
}

double Samples::value_of(std::size_t bin) {
  if (bin == 0) return 0;
  const std::uint64_t half = std::uint64_t{1} << (51 - kMantissaBits);  // the middle of the bin
  const std::uint64_t bits = (std::uint64_t{bin - 1} << (52 - kMantissaBits)) + half;
  return std::bit_cast<double>(bits + std::bit_cast<std::uint64_t>(1.0));
}

void Samples::keep(double value) {
  values_.push_back(value);
  if (values_.size() < kExact) return;
  bins_.assign((std::size_t{kDoublings} << kMantissaBits) + 1, 0);
  for (const double each : values_) ++bins_[bin_of(each)];
  values_ = {};
}

double Samples::quantile(double part) const {
  if (count_ == 0) return 0;
  if (exact()) {
    std::vector<double> sorted = values_;
    std::sort(sorted.begin(), sorted.end());
    return interpolated(sorted, part);
  }
  const double place = part * static_cast<double>(count_ - 1);
  std::int64_t seen = 0;
  for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
    seen += bins_[bin];
    if (static_cast<double>(seen) > place) return std::min(value_of(bin), max_);
  }
  return max_;
}

Distribution Samples::distribution() const {
  if (exact()) return distribution_of(values_);
  return {count_, sum_ / static_cast<double>(count_), quantile(0.50), quantile(0.90), quantile(0.95), quantile(0.99),
          max_};
}

}  // namespace llmprof::serving
