#pragma once
// What both forms of bars share.

#include <string>
#include <vector>

#include "report/plot.h"
#include "report/plot_axis.h"

namespace llmprof::report {

// 0, and the ends of every stretch.
std::vector<double> stretch_ends(const Bars& bars);
bool drawable(const Stretch& stretch, const AxisMap& axis);

}  // namespace llmprof::report
