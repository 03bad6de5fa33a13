#pragma once
// The axis of a plot: which range it spans, where its ticks are, what they are called. And what the SVG and the text of
// a plot both need to know of its values.

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "report/plot.h"

namespace llmprof::report {

struct Tick {
  double value = 0;
  std::string label;
};

class AxisMap {
 public:
  // Spans the drawable ones of `values`, with at most about `ticks` ticks. Without any: 0 to 1 (logarithmic: 1 to 10).
  AxisMap(const Axis& axis, std::span<const double> values, std::size_t ticks);

  bool drawable(double value) const;
  double position(double value) const;  // of a drawable value inside the range: 0 low end, 1 high end
  bool inside(double value) const { return drawable(value) && position(value) >= 0 && position(value) <= 1; }
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  void span_linear(double low, double high, std::size_t ticks);
  void span_logarithmic(double low, double high, std::size_t ticks);
  void tighten(double low, double high);
  void drop_ticks_outside();
  void add_tick(double value, std::string label) { ticks_.push_back({value, std::move(label)}); }
  double scaled(double value) const;

  Axis axis_;
  double low_ = 0, high_ = 1;  // on the scale: logarithms on a logarithmic axis
  std::vector<Tick> ticks_;
};

struct PlotAxes {
  AxisMap x, y;
  PlotAxes(const Plot& plot, std::size_t x_ticks, std::size_t y_ticks);
  bool shows(const PlotPoint& p) const { return x.drawable(p.x) && y.drawable(p.y); }
  bool shows(const Box& box) const { return x.drawable(box.begin) && x.drawable(box.end); }
};

std::string axis_title(const Axis& axis);                // "batch (sequences)"; the unit only if labels lack it
std::string axis_value(const Axis& axis, double value);  // "1.53 ms": one value in the axis' own unit

// At most about four points for each of `columns`: the first, the lowest, the highest and the last of those that fall
// there, so that no peak is lost. Fewer points than that are returned as they are.
std::vector<PlotPoint> thinned(const std::vector<PlotPoint>& points, const AxisMap& x_axis, std::size_t columns);

// "2 of 10 points not shown: …", or "" if all are.
std::string not_drawn(const Plot& plot, const PlotAxes& axes);

}  // namespace llmprof::report
