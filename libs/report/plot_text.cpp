#include <fmt/format.h>

#include <algorithm>

#include "base/text_table.h"
#include "report/dot_canvas.h"
#include "report/layout.h"
#include "report/plot.h"
#include "report/plot_axis.h"
#include "report/plot_values.h"
#include "report/text_canvas.h"

namespace llmprof::report {
namespace {

constexpr std::size_t kMarkDistance = 4;  // columns between marks of long series

struct Axes {
  const AxisMap& x;
  const AxisMap& y;
  bool shows(const PlotPoint& p) const { return x.drawable(p.x) && y.drawable(p.y); }
};

void draw_series(const Plot& plot, std::size_t index, const Axes& axes, DotCanvas& drawing) {
  const Series& series = plot.series[index];
  if (series.mark != Mark::kPoints) {
    for (std::size_t i = 1; i < series.points.size(); ++i) {
      const PlotPoint &a = series.points[i - 1], &b = series.points[i];
      if (!axes.shows(a) || !axes.shows(b)) continue;
      drawing.line(index, axes.x.position(a.x), axes.y.position(a.y), axes.x.position(b.x), axes.y.position(b.y));
    }
  }
  // Among several a line without marks gets some too: without colour only they say which series it is.
  if (series.mark == Mark::kLine && plot.series.size() == 1) return;
  const bool crowded = series.points.size() > 24 && series.mark != Mark::kPoints;
  for (const PlotPoint& point : series.points) {
    if (!axes.shows(point)) continue;
    const double x = axes.x.position(point.x), y = axes.y.position(point.y);
    if (!crowded || !drawing.marked_near(index, x, y, kMarkDistance)) drawing.mark(index, x, y);
  }
}

std::string guide_lines(const Plot& plot, const Axes& axes, std::size_t width, DotCanvas& drawing) {
  std::string out;
  for (const Guide& guide : plot.guides) {
    const bool at_x = guide.at == Guide::At::kX;
    if (!(at_x ? axes.x : axes.y).inside(guide.value)) continue;
    at_x ? drawing.guide_at_x(axes.x.position(guide.value)) : drawing.guide_at_y(axes.y.position(guide.value));
    out += wrapped(fmt::format("dashed at {}: {}", axis_value(at_x ? plot.x : plot.y, guide.value), guide.label), 2,
                   width);
  }
  return out;
}

// The line of labels below the drawing; those that would touch their neighbour are left out.
std::string x_labels(const AxisMap& axis, std::size_t columns) {
  std::string line;
  for (const Tick& tick : axis.ticks()) {
    const auto centre = static_cast<std::size_t>(axis.position(tick.value) * static_cast<double>(columns - 1) + 0.5);
    const std::size_t half = tick.label.size() / 2;
    std::size_t begin = centre > half ? centre - half : 0;
    if (begin + tick.label.size() > columns) begin = columns > tick.label.size() ? columns - tick.label.size() : 0;
    if (!line.empty() && begin < line.size() + 2) continue;
    line.resize(begin, ' ');
    line += tick.label;
  }
  return line;
}

// The label of the tick that falls into a row, or "".
std::string y_label(const AxisMap& axis, std::size_t row, std::size_t rows) {
  for (const Tick& tick : axis.ticks()) {
    const double from_top = (1 - axis.position(tick.value)) * static_cast<double>(rows - 1);
    if (static_cast<std::size_t>(from_top + 0.5) == row) return tick.label;
  }
  return "";
}

std::string frame(const DotCanvas& drawing, const Axes& axes, std::size_t label_width, std::size_t columns,
                  std::size_t rows, const TextCanvas& canvas) {
  std::string out;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::string label = y_label(axes.y, row, rows);
    const char* edge = canvas.unicode ? (label.empty() ? "│" : "┤") : (label.empty() ? "|" : "+");
    out += fmt::format("  {:>{}} {}{}\n", label, label_width, edge, drawing.row(row, canvas.colour));
  }
  std::string base_line;
  for (std::size_t i = 0; i < columns; ++i) base_line += canvas.unicode ? "─" : "-";
  out += fmt::format("  {:>{}} {}{}\n", "", label_width, canvas.unicode ? "└" : "+", base_line);
  return out + std::string(label_width + 4, ' ') + x_labels(axes.x, columns) + "\n";
}

}  // namespace

std::string plot_text(const Plot& plot, const TextCanvas& wanted) {
  const TextCanvas canvas = sane(wanted);
  const std::size_t rows = canvas.height;
  const AxisMap y_axis(plot.y, y_values(plot), std::max<std::size_t>(rows / 3, 2));
  std::size_t label_width = 0;
  for (const Tick& tick : y_axis.ticks()) label_width = std::max(label_width, base::display_width(tick.label));
  label_width = std::min(label_width, canvas.width / 3);
  const std::size_t columns = canvas.width - label_width - 4;
  const AxisMap x_axis(plot.x, x_values(plot), std::max<std::size_t>(columns / 9, 2));
  const Axes axes{x_axis, y_axis};
  DotCanvas drawing(columns, rows, canvas.unicode);
  const std::string guides = guide_lines(plot, axes, canvas.width, drawing);
  for (std::size_t i = plot.series.size(); i-- > 0;) draw_series(plot, i, axes, drawing);  // the first one on top

  std::vector<LegendEntry> legend;
  for (std::size_t i = 0; i < plot.series.size(); ++i)
    legend.push_back({std::string(text_mark(i, canvas.unicode)), plot.series[i].name});
  const std::string x_title = axis_title(plot.x);
  std::string out = text_head(plot.title, plot.note, canvas) + wrapped(axis_title(plot.y), 2, canvas.width);
  out += frame(drawing, axes, label_width, columns, rows, canvas);
  out +=
      wrapped(x_title, label_width + 4 + (columns > x_title.size() ? (columns - x_title.size()) / 2 : 0), canvas.width);
  if (plot.series.size() > 1) out += text_legend(legend, canvas);
  return fitted(out + guides + wrapped(not_drawn(plot, x_axis, y_axis), 2, canvas.width), canvas);
}

}  // namespace llmprof::report
