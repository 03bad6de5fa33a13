#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/plot.h"
#include "report/plot_axis.h"
#include "report/plot_values.h"
#include "report/svg.h"

namespace llmprof::report {
namespace {

struct Frame {
  double left, top, right, bottom;
  const AxisMap& x_axis;
  const AxisMap& y_axis;
  double x(double value) const { return left + x_axis.position(value) * (right - left); }
  double y(double value) const { return bottom - y_axis.position(value) * (bottom - top); }
  bool shows(const PlotPoint& p) const { return x_axis.drawable(p.x) && y_axis.drawable(p.y); }
};

std::string grid(const Plot& plot, const Frame& f) {
  std::string out;
  double free_from = 0;  // labels that would touch their left neighbour are left out
  for (const Tick& tick : f.x_axis.ticks()) {
    const double x = f.x(tick.value), half = svg_text_width(tick.label) / 2;
    out += svg_line(x, f.top, x, f.bottom, "grid");
    if (x - half < free_from) continue;
    out += svg_text(x, f.bottom + 17, tick.label, Anchor::kMiddle);
    free_from = x + half + 8;
  }
  for (const Tick& tick : f.y_axis.ticks()) {
    const double y = f.y(tick.value);
    out += svg_line(f.left, y, f.right, y, "grid") + svg_text(f.left - 7, y + 4, tick.label, Anchor::kEnd);
  }
  out += svg_line(f.left, f.bottom, f.right, f.bottom, "axis") + svg_line(f.left, f.top, f.left, f.bottom, "axis");
  out += svg_text((f.left + f.right) / 2, f.bottom + 37, axis_title(plot.x), Anchor::kMiddle, "note");
  return out + svg_text(16, f.top - 13, axis_title(plot.y), Anchor::kStart, "note");
}

// Labels that would touch one another stand in rows, one above the other.
class LabelRows {
 public:
  // The first row that is free between two places.
  std::size_t take(double begin, double end) {
    for (std::size_t row = 0;; ++row) {
      if (row == rows_.size()) rows_.emplace_back();
      const bool free = std::all_of(rows_[row].begin(), rows_[row].end(),
                                    [&](const auto& taken) { return end < taken.first || begin > taken.second; });
      if (!free) continue;
      rows_[row].emplace_back(begin, end);
      return row;
    }
  }

 private:
  std::vector<std::vector<std::pair<double, double>>> rows_;
};

// Labels stand above what is drawn between them and their lines.
struct Guides {
  std::string lines, labels;
};

Guides guides(const Plot& plot, const Frame& f) {
  constexpr double kRow = 15;
  Guides out;
  LabelRows above, below;
  for (const Guide& guide : plot.guides) {
    if (guide.at == Guide::At::kX) {
      if (!f.x_axis.inside(guide.value)) continue;
      const double x = f.x(guide.value), width = svg_text_width(guide.label) + 10;
      const bool left = x + width > f.right;
      const auto row =
          static_cast<double>((guide.low ? below : above).take(left ? x - width : x, left ? x : x + width));
      const double y = guide.low ? f.bottom - 7 - kRow * row : f.top + 13 + kRow * row;
      out.lines += svg_line(x, f.top, x, f.bottom, "guide");
      out.labels += svg_text(left ? x - 5 : x + 5, y, guide.label, left ? Anchor::kEnd : Anchor::kStart, "note halo");
    } else if (f.y_axis.inside(guide.value)) {
      const double y = f.y(guide.value);
      out.lines += svg_line(f.left, y, f.right, y, "guide");
      out.labels += svg_text(f.right - 5, y - 5, guide.label, Anchor::kEnd, "note halo");
    }
  }
  return out;
}

struct Box {
  double left, top, right, bottom;
  bool touches(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

constexpr double kLetter = 14, kAway = 8;

// Where a label may stand, the best first: right of its point, left, above or below it; of a line above or below it.
std::vector<Box> places_of(const PlotLabel& label, double x, double y, double width) {
  if (label.on_line)
    return {{x - 6 - width, y - kLetter - 4, x - 6, y - 4}, {x - 6 - width, y + 4, x - 6, y + kLetter + 4}};
  return {{x + kAway, y - kLetter / 2, x + kAway + width, y + kLetter / 2},
          {x - kAway - width, y - kLetter / 2, x - kAway, y + kLetter / 2},
          {x - width / 2, y - kAway - kLetter, x + width / 2, y - kAway},
          {x - width / 2, y + kAway, x + width / 2, y + kAway + kLetter}};
}

// Where no other label and no mark of a labelled point stands.
std::string labels(const Plot& plot, const Frame& f) {
  std::vector<Box> taken;
  for (const PlotLabel& label : plot.labels) {
    if (f.shows({label.x, label.y}) && !label.on_line) {
      const double x = f.x(label.x), y = f.y(label.y);
      taken.push_back({x - 4, y - 4, x + 4, y + 4});
    }
  }
  std::string out;
  for (const PlotLabel& label : plot.labels) {
    if (!f.x_axis.inside(label.x) || !f.y_axis.inside(label.y)) continue;
    const double x = f.x(label.x), y = f.y(label.y), width = svg_text_width(label.text);
    for (const Box& place : places_of(label, x, y, width)) {
      const bool outside = place.left < f.left || place.right > f.right || place.top < f.top || place.bottom > f.bottom;
      if (outside || std::any_of(taken.begin(), taken.end(), [&](const Box& b) { return b.touches(place); })) continue;
      out += svg_text(place.left, place.bottom - 3, label.text, Anchor::kStart, "halo");
      taken.push_back(place);
      break;
    }
  }
  return out;
}

std::string line_of(const std::vector<PlotPoint>& points, const std::string& style_class, const Frame& f) {
  std::string path;
  bool pen_down = false;
  for (const PlotPoint& point : points) {
    if (f.shows(point)) path += fmt::format("{}{:.1f} {:.1f}", pen_down ? 'L' : 'M', f.x(point.x), f.y(point.y));
    pen_down = f.shows(point);
  }
  return path.empty() ? "" : fmt::format("<path class=\"{}\" d=\"{}\"/>\n", style_class, path);
}

std::string tip_of(const Plot& plot, const Series& series, const PlotPoint& point) {
  return fmt::format("{}: {} at {}", series.name, axis_value(plot.y, point.y), axis_value(plot.x, point.x));
}

std::string drawn(const Plot& plot, std::size_t index, const Frame& f) {
  const Series& series = plot.series[index];
  const std::vector<PlotPoint> points = thinned(series.points, f.x_axis, static_cast<std::size_t>(f.right - f.left));
  const std::string style_class = series.backdrop ? "roof" : fmt::format("s{}", index % kColours);
  std::string out = series.mark == Mark::kPoints ? "" : line_of(points, style_class, f);
  if (series.mark == Mark::kLine) return out;
  for (const PlotPoint& point : points) {
    if (f.shows(point)) out += svg_mark(index, f.x(point.x), f.y(point.y), tip_of(plot, series, point));
  }
  return out;
}

}  // namespace

std::string plot_svg(const Plot& plot, const SvgSize& size) {
  const int width = std::clamp(size.width, 240, 10'000), height = std::clamp(size.height, 160, 10'000);
  std::vector<std::string> names;
  std::vector<LegendKey> keys;
  for (const Series& series : plot.series) {
    if (series.backdrop) continue;
    names.push_back(series.name);
    keys.push_back(series.mark == Mark::kLine ? LegendKey::kLine : LegendKey::kMark);
  }
  const SvgHead head = svg_head(plot.title, plot.note, names, keys, width);
  const double top = head.bottom + 36, bottom = std::max<double>(height - 52.0, top + 60);
  const AxisMap x_axis(plot.x, x_values(plot), static_cast<std::size_t>(width) / 80);
  const AxisMap y_axis(plot.y, y_values(plot), static_cast<std::size_t>(bottom - top) / 40);
  double label_width = 0;
  for (const Tick& tick : y_axis.ticks()) label_width = std::max(label_width, svg_text_width(tick.label));
  const Frame frame{24 + label_width, top, width - 24.0, bottom, x_axis, y_axis};
  const Guides guide = guides(plot, frame);
  std::string out = svg_begin(width, static_cast<int>(bottom + 52), plot.title, size.theme) + head.text +
                    grid(plot, frame) + guide.lines;
  for (std::size_t i = plot.series.size(); i-- > 0;) out += drawn(plot, i, frame);  // the first one on top
  out += guide.labels + labels(plot, frame);
  if (const std::string missing = not_drawn(plot, x_axis, y_axis); !missing.empty())
    out += svg_text(16, bottom + 46, missing, Anchor::kStart, "note");
  return out + std::string(kSvgEnd);
}

}  // namespace llmprof::report
