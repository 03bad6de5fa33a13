#pragma once
// How far the samples' clock is off the kernels': the shift at which the samples' own activity follows the time that
// kernels ran.

#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/counters/unmix.h"

namespace llmprof::analyze::counters {

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
