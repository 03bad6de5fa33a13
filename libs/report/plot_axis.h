#pragma once
// The axis of a plot: which range it spans, where its ticks are, what they are called.

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

  // From the lowest to the highest of them, linear and without ticks.
  static AxisMap exactly(std::span<const double> values);

  bool drawable(double value) const;
  double position(double value) const;  // of a drawable value inside the range: 0 low end, 1 high end
  bool inside(double value) const { return drawable(value) && position(value) >= 0 && position(value) <= 1; }
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  AxisMap() = default;
  void span_linear(double low, double high, std::size_t ticks);
  void span_logarithmic(double low, double high, std::size_t ticks);
  void tighten(double low, double high);
  std::pair<double, double> ends_of(std::span<const double> values, double low, double high) const;  // of drawable ones
  void add_tick(double value, std::string label) { ticks_.push_back({value, std::move(label)}); }
  double scaled(double value) const;

  Axis axis_;
  double low_ = 0, high_ = 1;  // on the scale: logarithms on a logarithmic axis
  std::vector<Tick> ticks_;
};

std::string axis_title(const Axis& axis);                // "batch (sequences)"; the unit only if labels lack it
std::string axis_value(const Axis& axis, double value);  // "1.53 ms": one value in the axis' own unit

}  // namespace llmprof::report
