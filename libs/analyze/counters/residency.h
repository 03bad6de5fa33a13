#pragma once
// How long each class ran in each sample: sparse, because few classes run in a sample of a millisecond.

#include <cstdint>
#include <span>
#include <vector>

#include "analyze/counters/unmix.h"

namespace llmprof::analyze::counters {

struct Share {
  std::int32_t column = 0;
  double seconds = 0;
};

class Residency {
 public:
  // `intervals` ordered by their begin; `column_of` says which column a class belongs to. The last column is the time
  // in which nothing ran. `shift_ns` is added to the samples' times.
  Residency(std::span<const Sample> samples, std::span<const Interval> intervals,
            std::span<const std::int32_t> column_of, std::int64_t shift_ns = 0);

  std::span<const Share> of(std::size_t sample) const {
    return std::span(shares_).subspan(first_[sample], first_[sample + 1] - first_[sample]);
  }
  std::size_t columns() const { return totals_.size(); }
  std::size_t samples() const { return first_.size() - 1; }
  const std::vector<double>& totals() const { return totals_; }  // seconds of each column in all samples

 private:
  std::vector<std::size_t> first_;  // of each sample, and the end
  std::vector<Share> shares_;
  std::vector<double> totals_;
};

// Seconds of each class in the samples, which are in order and do not overlap.
std::vector<double> seconds_by_kind(std::span<const Sample> samples, std::span<const Interval> intervals,
                                    std::int32_t kinds);

// Times in which anything ran, in order, none touching the next.
std::vector<Interval> merged(std::span<const Interval> intervals);

}  // namespace llmprof::analyze::counters
