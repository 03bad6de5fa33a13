#pragma once
// Which steps a measured range covers. Pure.

#include <optional>
#include <string>
#include <vector>

#include "analyze/counters/readings.h"

namespace llmprof::analyze::counters {

struct CoveredSteps {
  std::string stage;
  std::int64_t steps = 0;
  double flops = 0, bytes = 0;  // that the model needs in them, added up; NaN unknown
};

// `steps` by thread and begin. The steps of a range of this name that the window covers: a step of that name with which
// it shares half of its time, or any that it contains as a whole. Nothing where there are none or of several stages:
// the range then stands for itself.
std::optional<CoveredSteps> covered(const MeasuredWindow& window, const std::string& name,
                                    const std::vector<PlacedStep>& steps);

}  // namespace llmprof::analyze::counters
