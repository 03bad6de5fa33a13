#include "bench/stopping.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace llmprof::bench {
namespace {

double weight(std::size_t count) {
  const auto c = static_cast<double>(count);
  return count == 0 ? 0 : c * std::log2(c);
}

}  // namespace

void SpreadCriterion::add(double seconds) {
  ++count_;
  const double before = seconds - mean_;
  mean_ += before / static_cast<double>(count_);
  squares_ += before * (seconds - mean_);
}

double SpreadCriterion::relative_error() const {
  if (count_ < 2 || mean_ <= 0) return std::numeric_limits<double>::infinity();
  const auto n = static_cast<double>(count_);
  return std::sqrt(squares_ / (n - 1) / n) / mean_;
}

void EntropyCriterion::add(double seconds) {
  constexpr double kMost = 9e18;  // what an int64 holds
  const auto step = static_cast<std::int64_t>(std::min(std::round(seconds / resolution_seconds_), kMost));
  std::size_t& count = counts_[step];
  weighted_ += weight(count + 1) - weight(count);
  ++count;
  ++count_;
  window_.push_back(entropy_bits());
  if (window_.size() > kWindow) window_.pop_front();
}

// -sum p log2 p with p = c / n is log2 n - (sum c log2 c) / n.
double EntropyCriterion::entropy_bits() const {
  if (count_ == 0) return 0;
  const auto n = static_cast<double>(count_);
  return std::max(0.0, std::log2(n) - weighted_ / n);
}

bool EntropyCriterion::done() const {
  if (window_.size() < kLeastPoints) return false;
  const Line line = fitted_line(window_);
  const double degrees = std::atan(std::abs(line.slope)) * 180 / std::numbers::pi;
  return degrees <= kMostDegrees && line.r2 >= kLeastR2;
}

Line fitted_line(const std::deque<double>& y) {
  const auto n = static_cast<double>(y.size());
  const double middle = (n - 1) / 2;
  double mean = 0;
  for (const double value : y) mean += value / n;
  double xx = 0, xy = 0, yy = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double dx = static_cast<double>(i) - middle, dy = y[i] - mean;
    xx += dx * dx;
    xy += dx * dy;
    yy += dy * dy;
  }
  const double level = 1e-24 * n * (1 + mean * mean);  // what rounding alone gives
  if (xx == 0 || yy <= level) return {0, 1};
  return {xy / xx, xy * xy / (xx * yy)};
}

}  // namespace llmprof::bench
