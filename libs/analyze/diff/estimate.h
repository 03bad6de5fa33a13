#pragma once
// Means with their uncertainty, and what they say about two sides. Samples of successive steps are correlated, so the
// error of a mean comes from means of batches, not from single samples. Pure functions.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace llmprof::analyze {

// A number and how well it is known.
struct Estimate {
  double value = 0;
  std::optional<double> error;  // standard error; 0: counted, not measured; nullopt: nothing tells it
  double freedom = 0;           // degrees of freedom of `error`
  std::int64_t samples = 0;     // steps, or runs, that it is made from
};

inline constexpr std::size_t kLeastBatches = 8;  // fewer do not tell an error
inline constexpr std::size_t kMostBatches = 32;

// The mean of batches of (nearly) equal weight in order of time. Neighbours are joined, down to kLeastBatches, as long
// as they are correlated; what correlation is left makes the error larger.
Estimate mean_of_batches(std::vector<double> batches);
// The same of samples in order of time, any number of them.
Estimate mean_of_samples(std::span<const double> samples);
// The q-quantile (as quantile_disc) of samples in order of time, its error from the quantiles of batches. Without error
// where a batch would hold too few samples for that quantile.
Estimate quantile_of_samples(std::span<const double> samples, double q);

// Of repeated runs: the mean, its error from the spread between runs or from that within them, whichever is larger.
Estimate mean_of_runs(std::span<const Estimate> runs);

struct Change {
  std::optional<double> ratio;      // after / before - 1; nullopt where before is 0
  std::optional<double> low, high;  // 95 % interval of it
  std::optional<double> p;          // two-sided: that it is chance; 0 where both are counted and differ
};
// Welch's test on the logarithms. A side of one run among repeats takes over the spread of the other.
Change change_between(std::span<const Estimate> before, std::span<const Estimate> after);

// Student's t: the two-sided probability of |t| or more, and the t that 95 % lie within.
double student_p(double t, double freedom);
double student_t95(double freedom);

}  // namespace llmprof::analyze
