#pragma once
// Values of kernel classes out of samples of the whole device. In a sample, each class ran for some of the time; what
// was counted is the sum over the classes of rate times time, and over many samples the rates that are not negative and
// explain the counts best are the answer (non-negative least squares). Two classes that always run in the same
// proportion cannot be told apart: their error then is as large as their value.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace llmprof::analyze::counters {

// One period of the device and what was counted in it: a quantity that adds up (bytes, cycles, instructions). A
// percentage is to be multiplied by the sample's seconds first, and its rate then is the percentage again.
struct Sample {
  std::int64_t begin_ns = 0, end_ns = 0;
  double count = 0;
};

// A class ran on the device. `kind` numbers the classes from 0.
struct Interval {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int32_t kind = 0;
};

struct UnmixInput {
  std::vector<Sample> samples;      // of one device and one metric; any order; not overlapping
  std::vector<Interval> intervals;  // of the same device, on the same clock; any order, may overlap
  std::int32_t kinds = 0;
  // The intervals are shares of something longer (kernels in a graph that were placed by their usual length): errors
  // grow by what that may move.
  bool estimated = false;
  std::int64_t clock_error_ns = 15'000;  // how far the samples' clock may be off the kernels': 8 to 20 us were seen
};

struct UnmixedRate {
  std::int32_t kind = 0;
  double rate = 0;           // per second of the class's time
  double error = 0;          // of the rate: it is within `rate` ± `error` in 19 of 20 cases
  std::int64_t time_ns = 0;  // of the class, inside samples
  bool told_apart = true;    // false: the class runs with others in a fixed proportion, the rate is one of many
};

struct Unmixed {
  std::vector<UnmixedRate> kinds;  // by number, each that ran in a sample; those of "other" are not among them
  UnmixedRate other;               // classes beyond the heaviest 40, as one; kind is -1
  UnmixedRate idle;                // when no kernel ran; kind is -1
  std::int64_t samples = 0;        // that were used
  double explained = 0;            // part of the samples' variance: 1 is all of it
  double shift_ns = 0;             // by which the samples were moved
};

inline constexpr std::int32_t kMostKinds = 40;  // told apart; the rest is one class

Unmixed unmix(const UnmixInput& input);

// The same for many metrics of the same samples: the times of the classes are computed once.
struct UnmixSeries {
  std::vector<double> counts;  // one a sample, in the order of UnmixInput::samples; NaN: the sample has none
};
// The samples are moved first where the classes say clearly by how much (align.h), which makes the errors smaller.
std::vector<Unmixed> unmix(const UnmixInput& input, const std::vector<UnmixSeries>& metrics);
// With the samples where they are.
std::vector<Unmixed> unmix_as_is(const UnmixInput& input, const std::vector<UnmixSeries>& metrics);

// How much of a metric the classes explain when the samples are moved by each of these times.
std::vector<double> explained_at(const UnmixInput& input, const UnmixSeries& metric,
                                 const std::vector<std::int64_t>& shifts_ns);

// How long each class ran in each sample: sparse, because few classes run in a sample of a millisecond.

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

// Small symmetric systems: non-negative least squares by an active set, on the normal equations.

class SquareMatrix {
 public:
  explicit SquareMatrix(std::size_t size) : size_(size), values_(size * size, 0) {}
  double& at(std::size_t row, std::size_t column) { return values_[row * size_ + column]; }
  double at(std::size_t row, std::size_t column) const { return values_[row * size_ + column]; }
  std::size_t size() const { return size_; }
  // Of these rows and columns.
  SquareMatrix part(const std::vector<std::size_t>& chosen) const;

 private:
  std::size_t size_;
  std::vector<double> values_;
};

// L of L L^T; none where the matrix is singular to rounding.
std::optional<SquareMatrix> cholesky(const SquareMatrix& matrix);
std::vector<double> solve(const SquareMatrix& factor, std::vector<double> right);
SquareMatrix inverse(const SquareMatrix& factor);

// x >= 0 that minimises x^T G x / 2 - b^T x; `chosen` are the numbers of those that are not held at 0, in order.
// Columns that depend on chosen ones stay at 0.
struct Nnls {
  std::vector<double> x;
  std::vector<std::size_t> chosen;
};
Nnls nnls(const SquareMatrix& gram, const std::vector<double>& right);

// How far the samples' clock is off the kernels': the shift at which the samples' own activity follows the time that
// kernels ran.

struct Alignment {
  double shift_ns = 0;  // to be added to the samples' times; 0 where nothing is clearly better
  double fit = 0;       // correlation of activity and kernel time at that shift: 1 is perfect
  double fit_unshifted = 0;
  double error_ns = 0;   // by which it may be off; of align_by_classes
  bool certain = false;  // the best shift is clearly better than its neighbours
};

// `activity`: samples whose count is a measure of activity (cycles in which a multiprocessor was busy); `intervals`: of
// kernels, any class. Searches from -most to +most.
Alignment align(const std::vector<Sample>& activity, const std::vector<Interval>& intervals,
                std::int64_t most_ns = 300'000);

// The same by what the classes explain of a metric: sharper where the device is never idle but its classes differ.
// `fit` then is the explained part of the variance.
Alignment align_by_classes(const UnmixInput& input, const UnmixSeries& metric, std::int64_t most_ns = 60'000);

}  // namespace llmprof::analyze::counters
