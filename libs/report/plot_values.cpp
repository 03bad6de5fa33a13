#include "report/plot_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace llmprof::report {
namespace {

std::vector<double> values(const Plot& plot, double PlotPoint::*member, Guide::At at) {
  std::vector<double> out;
  for (const Series& series : plot.series) {
    for (const PlotPoint& point : series.points) out.push_back(point.*member);
  }
  for (const Guide& guide : plot.guides) {
    if (guide.at == at) out.push_back(guide.value);
  }
  return out;
}

// The first, lowest, highest and last of a run of points, in their order, each once.
void add_extremes(const PlotPoint* begin, const PlotPoint* end, std::vector<PlotPoint>& out) {
  const auto lower = [](const PlotPoint& a, const PlotPoint& b) { return a.y < b.y; };
  std::vector<const PlotPoint*> kept = {begin, std::min_element(begin, end, lower), std::max_element(begin, end, lower),
                                        end - 1};
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  for (const PlotPoint* point : kept) out.push_back(*point);
}

}  // namespace

std::vector<double> x_values(const Plot& plot) { return values(plot, &PlotPoint::x, Guide::At::kX); }
std::vector<double> y_values(const Plot& plot) { return values(plot, &PlotPoint::y, Guide::At::kY); }

std::vector<PlotPoint> thinned(const std::vector<PlotPoint>& points, const AxisMap& x_axis, std::size_t columns) {
  if (points.size() <= 4 * columns) return points;
  const auto column = [&](const PlotPoint& point) {
    const bool known = x_axis.drawable(point.x) && std::isfinite(point.y);
    return known ? static_cast<std::int64_t>(x_axis.position(point.x) * static_cast<double>(columns)) : -1;
  };
  std::vector<PlotPoint> out;
  const PlotPoint* const end = points.data() + points.size();
  for (const PlotPoint* begin = points.data(); begin != end;) {
    const PlotPoint* next = begin + 1;
    while (next != end && column(*next) == column(*begin)) ++next;
    add_extremes(begin, next, out);
    begin = next;
  }
  return out;
}

std::string not_drawn(const Plot& plot, const AxisMap& x_axis, const AxisMap& y_axis) {
  std::size_t all = 0, missing = 0;
  for (const Series& series : plot.series) {
    for (const PlotPoint& point : series.points) {
      ++all;
      if (!x_axis.drawable(point.x) || !y_axis.drawable(point.y)) ++missing;
    }
  }
  if (all == 0) return "Nothing to draw: there are no points.";
  if (missing == 0) return "";
  return fmt::format("{} of {} points not shown: unknown, or not positive on a logarithmic axis.", missing, all);
}

}  // namespace llmprof::report
