#include "report/plot_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace llmprof::report {
namespace {

// Power of 1000 that brings `value` to 1…999; 0 where prefixes are not wanted.
int prefix_of(const Axis& axis, double value) {
  if (!axis.prefixes || value == 0 || !std::isfinite(value)) return 0;
  return std::clamp(static_cast<int>(std::floor(std::log10(std::fabs(value)) / 3 + 1e-9)), -4, 6);
}

std::string with_unit(const Axis& axis, const std::string& number, int prefix) {
  static constexpr std::array<const char*, 11> kPrefixes = {"p", "n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
  const std::string unit = axis.prefixes ? kPrefixes.at(static_cast<std::size_t>(prefix + 4)) + axis.unit : "";
  return unit.empty() ? number : number + " " + unit;
}

// `value` in thousands to the power of `prefix`, with as many decimals as a distance of `step` needs.
std::string label_of(const Axis& axis, double value, double step, int prefix) {
  const double scale = std::pow(1000.0, prefix);
  const double tenths = std::log10(step / scale);
  int decimals = std::clamp(static_cast<int>(std::ceil(-tenths - 1e-9)), 0, 9);
  const double last = step / scale * std::pow(10.0, decimals);  // 2.5 needs one more than 2 does
  if (std::fabs(last - std::round(last)) > 1e-6) ++decimals;
  if (std::fabs(value) < step * 1e-6) return "0";
  if (std::fabs(value / scale) >= 1e15) return with_unit(axis, fmt::format("{:.6g}", value / scale), prefix);
  return with_unit(axis, fmt::format("{:.{}f}", value / scale, decimals), prefix);
}

// The smallest of 1, 2, 2.5, 5 times a power of ten that is not below `least`.
double nice_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::string power_of_two_label(const Axis& axis, int exponent) {
  static constexpr std::array<const char*, 5> kBinary = {"", " Ki", " Mi", " Gi", " Ti"};
  if (exponent < 0)
    return fmt::format("1/{}",
                       exponent > -31 ? fmt::format("{}", 1LL << -exponent) : "2^" + fmt::format("{}", -exponent));
  if (exponent >= 50) return fmt::format("2^{}", exponent);
  const int thousands = exponent <= 16 ? 0 : exponent / 10;  // 65536 is still a number that people know
  const std::string number =
      fmt::format("{}{}", 1LL << (exponent - 10 * thousands), kBinary.at(static_cast<std::size_t>(thousands)));
  if (!axis.prefixes || axis.unit.empty()) return number;
  return number + (thousands > 0 ? "" : " ") + axis.unit;
}

// Of points that cannot be drawn too: an axis ignores those itself.
std::vector<double> values(const Plot& plot, double PlotPoint::*member, Guide::At at) {
  std::vector<double> out = (at == Guide::At::kX ? plot.x : plot.y).spans;
  for (const Series& series : plot.series) {
    for (const PlotPoint& point : series.points) out.push_back(point.*member);
  }
  for (const Guide& guide : plot.guides) {
    if (guide.at == at) out.push_back(guide.value);
  }
  if (at == Guide::At::kY) return out;
  for (const PlotRow& row : plot.rows) {
    for (const Box& box : row.boxes) out.insert(out.end(), {box.begin, box.end});
    for (const RangePoint& point : row.range) out.push_back(point.x);
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

AxisMap::AxisMap(const Axis& axis, std::span<const double> values, std::size_t ticks) : axis_(axis) {
  const bool logarithmic = axis.scale != Scale::kLinear;
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const double value : values) {
    if (drawable(value)) low = std::min(low, value), high = std::max(high, value);
  }
  if (low > high) low = logarithmic ? 1 : 0, high = logarithmic ? 10 : 1;
  ticks = std::max<std::size_t>(ticks, 2);
  logarithmic ? span_logarithmic(low, high, ticks) : span_linear(low, high, ticks);
  if (!axis.exact || logarithmic) return;
  low_ = low, high_ = high > low ? high : low + 1;
  drop_ticks_outside();
}

bool AxisMap::drawable(double value) const {
  // Beyond 1e300 differences overflow.
  if (!std::isfinite(value) || std::fabs(value) > 1e300) return false;
  return axis_.scale == Scale::kLinear || value >= 1e-300;
}

double AxisMap::scaled(double value) const {
  return axis_.scale == Scale::kLinear ? value : axis_.scale == Scale::kLog2 ? std::log2(value) : std::log10(value);
}

double AxisMap::position(double value) const { return (scaled(value) - low_) / (high_ - low_); }

void AxisMap::span_linear(double low, double high, std::size_t ticks) {
  if (low > 0 && low < high / 2) low = 0;  // bars and lines near zero are compared with zero
  if (high < 0 && high > low / 2) high = 0;
  if (high - low <= 1e-9 * std::max(std::fabs(low), std::fabs(high))) {
    const double around = low == 0 ? 1 : std::fabs(low) / 10;
    low -= around, high += around;
  }
  const double nice = nice_step((high - low) / static_cast<double>(ticks)),
               step = axis_.whole ? std::max(nice, 1.0) : nice;
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  low_ = first * step, high_ = last * step;
  const int prefix = prefix_of(axis_, std::max(std::fabs(low_), std::fabs(high_)));
  for (double i = first; i <= last && ticks_.size() <= 2 * ticks; ++i)
    add_tick(i * step, label_of(axis_, i * step, step, prefix));
}

void AxisMap::span_logarithmic(double low, double high, std::size_t ticks) {
  const int first = static_cast<int>(std::floor(scaled(low) + 1e-9));
  const int last = std::max(static_cast<int>(std::ceil(scaled(high) - 1e-9)), first + 1);
  low_ = first, high_ = last;
  const int stride = std::max(1, static_cast<int>(std::ceil((high_ - low_) / static_cast<double>(ticks))));
  const bool fine = axis_.scale == Scale::kLog10 && static_cast<std::size_t>(3 * (last - first)) <= ticks;
  for (int exponent = first; exponent <= last; exponent += stride) {
    if (axis_.scale == Scale::kLog2) {
      add_tick(std::exp2(exponent), power_of_two_label(axis_, exponent));
      continue;
    }
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10.0, exponent);
      if (factor == 1 || (fine && exponent < last))
        add_tick(value, label_of(axis_, value, value, prefix_of(axis_, value)));
    }
  }
  if (axis_.scale == Scale::kLog10) tighten(low, high);
}

// Decades are coarse: the ends move in to the nearest of 1, 2, 5 times a power of ten, and ticks outside go.
void AxisMap::tighten(double low, double high) {
  for (const double factor : {std::log10(2.0), std::log10(5.0)}) {
    if (std::floor(low_) + factor <= scaled(low) + 1e-9) low_ = std::floor(low_) + factor;
  }
  for (const double factor : {1 - std::log10(5.0), 1 - std::log10(2.0)}) {
    if (std::ceil(high_) - factor >= scaled(high) - 1e-9 && std::ceil(high_) - factor > low_ + 0.2)
      high_ = std::ceil(high_) - factor;
  }
  drop_ticks_outside();
}

void AxisMap::drop_ticks_outside() {
  std::erase_if(ticks_,
                [&](const Tick& tick) { return position(tick.value) < -1e-9 || position(tick.value) > 1 + 1e-9; });
}

std::string axis_title(const Axis& axis) {
  return axis.prefixes || axis.unit.empty() ? axis.title : fmt::format("{} ({})", axis.title, axis.unit);
}

std::string axis_value(const Axis& axis, double value) {
  const int prefix = prefix_of(axis, value);
  const std::string number = fmt::format("{:.4g}", value / std::pow(1000.0, prefix));
  if (axis.prefixes) return with_unit(axis, number, prefix);
  return axis.unit.empty() ? number : number + " " + axis.unit;
}

PlotAxes::PlotAxes(const Plot& plot, std::size_t x_ticks, std::size_t y_ticks)
    : x(plot.x, values(plot, &PlotPoint::x, Guide::At::kX), x_ticks),
      y(plot.y, values(plot, &PlotPoint::y, Guide::At::kY), y_ticks) {}

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

std::string not_drawn(const Plot& plot, const PlotAxes& axes) {
  if (!plot.rows.empty()) return "";
  std::size_t all = 0, missing = 0;
  for (const Series& series : plot.series) {
    all += series.points.size();
    for (const PlotPoint& point : series.points) missing += axes.shows(point) ? 0 : 1;
  }
  if (all == 0) return "Nothing to draw: there are no points.";
  if (missing == 0) return "";
  return fmt::format("{} of {} points not shown: unknown, or not positive on a logarithmic axis.", missing, all);
}

Plot waterfall_plot(const Drop& whole, const std::vector<Drop>& drops) {
  Plot plot{.joined = true};
  plot.rows.push_back({.label = whole.label, .boxes = {{whole.colour, 0, whole.value}}, .value = whole.text});
  double level = whole.value;
  for (const Drop& drop : drops) {
    plot.rows.push_back({.label = drop.label, .boxes = {{drop.colour, level, level - drop.value}}, .value = drop.text});
    level -= drop.value;
  }
  return plot;
}

}  // namespace llmprof::report
