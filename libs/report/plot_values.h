#pragma once
// The values of a plot as both of its forms need them.

#include <string>
#include <vector>

#include "report/plot.h"
#include "report/plot_axis.h"

namespace llmprof::report {

// Of the series and the guides; of points that cannot be drawn too: an axis ignores those itself.
std::vector<double> x_values(const Plot& plot);
std::vector<double> y_values(const Plot& plot);

// At most about four points for each of `columns`: the first, the lowest, the highest and the last of those that fall
// there, so that no peak is lost. Fewer points than that are returned as they are.
std::vector<PlotPoint> thinned(const std::vector<PlotPoint>& points, const AxisMap& x_axis, std::size_t columns);

// "2 of 10 points are not shown: …", or "" if all are.
std::string not_drawn(const Plot& plot, const AxisMap& x_axis, const AxisMap& y_axis);

}  // namespace llmprof::report
