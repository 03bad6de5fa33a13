#pragma once
// Of samples to numbers. Pure functions of samples that are finite and above 0, at least one in each group.

#include <cstddef>
#include <span>
#include <vector>

namespace llmprof::bench {

struct Statistics {
  std::size_t count = 0;
  double mean = 0, median = 0, min = 0, max = 0;
  double deviation = 0;  // standard deviation of the samples
  double p5 = 0, p95 = 0, p99 = 0;
  double low = 0, high = 0;  // 95 % confidence interval of the median (order statistics); min and max when few
};

Statistics statistics(std::span<const double> samples);     // of at least one
double quantile(std::span<const double> sorted, double q);  // linear between neighbours

// Two groups of samples: how their medians differ, and whether that is more than chance.
struct Comparison {
  double ratio = 1;          // median of b over median of a
  double low = 1, high = 1;  // 95 % confidence interval of the ratio
  double p = 1;              // two-sided Mann-Whitney, with ties
};
Comparison compare(std::span<const double> a, std::span<const double> b);
// Of many comparisons at once: p values as they stand after Benjamini and Hochberg, in the order given.
std::vector<double> adjusted(std::span<const double> p);

}  // namespace llmprof::bench
