#pragma once
// Distributions as numpy and vLLM's benchmarks state them: percentiles by linear interpolation between samples.

#include <cstdint>
#include <vector>

namespace llmprof::serving {

struct Distribution {
  std::int64_t count = 0;
  double mean = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
};

Distribution distribution_of(std::vector<double> values);

// Samples one by one, in bounded memory: exact up to 2^20 of them, beyond that percentiles are right to 0.05 % of the
// value (mean and maximum stay exact). Takes values of at least 0.
class Samples {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
    if (value > max_) max_ = value;
    if (bins_.empty()) {
      keep(value);
    } else {
      ++bins_[bin_of(value)];
    }
  }
  std::int64_t count() const { return count_; }
  bool exact() const { return bins_.empty(); }
  Distribution distribution() const;
  // The value below which this part of the samples lies.
  double quantile(double part) const;

 private:
  static constexpr std::size_t kExact = std::size_t{1} << 20;
  static constexpr int kMantissaBits = 10;  // 1,024 bins for every doubling
  static constexpr int kDoublings = 64;     // from 1 to 1.8e19: with ns, 580 years
  static std::size_t bin_of(double value);
  static double value_of(std::size_t bin);
  void keep(double value);

  std::vector<double> values_;
  std::vector<std::int64_t> bins_;
  double sum_ = 0, max_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace llmprof::serving
