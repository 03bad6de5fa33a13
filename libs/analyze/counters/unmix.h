#pragma once
// Values of kernel classes out of samples of the whole device. In a sample, each class ran for some of the time; what
// was counted is the sum over the classes of rate times time, and over many samples the rates that are not negative and
// explain the counts best are the answer (non-negative least squares). Two classes that always run in the same
// proportion cannot be told apart: their error then is as large as their value.

#include <cstdint>
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

}  // namespace llmprof::analyze::counters
