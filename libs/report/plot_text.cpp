#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text_table.h"
#include "report/layout.h"
#include "report/page.h"
#include "report/plot.h"
#include "report/plot_axis.h"

namespace llmprof::report {
namespace {

constexpr std::size_t kMarkDistance = 4;  // columns between marks of long series

using Glyphs = std::array<std::string_view, 4>;

// Marks tell series apart without colour, fillings the boxes of rows.
std::string_view text_mark(std::size_t series, bool unicode) {
  static constexpr std::array<std::string_view, 8> kMarks = {"●", "■", "▲", "◆", "○", "□", "△", "◇"};
  static constexpr std::array<std::string_view, 8> kAscii = {"*", "o", "+", "x", "#", "@", "%", "&"};
  return (unicode ? kMarks : kAscii)[series % kMarks.size()];
}

std::string_view filling(std::size_t colour, bool unicode) {
  static constexpr Glyphs kBlocks = {"█", "▒", "░", "▓"}, kAscii = {"#", "=", "-", "+"};
  return (unicode ? kBlocks : kAscii)[colour % kBlocks.size()];
}

std::string coloured(std::size_t series, std::string_view text, bool colour) {
  static constexpr std::array<int, 6> kCodes = {34, 33, 32, 31, 35, 36};
  return colour ? fmt::format("\x1b[{}m{}\x1b[0m", kCodes[series % kCodes.size()], text) : std::string(text);
}

// A drawing made of characters: lines out of braille dots (2 x 4 per character; ASCII: one '.' each), marks on top.
// Positions are 0…1 from the left and from the bottom.
class Dots {
 public:
  Dots(std::size_t columns, std::size_t rows, bool unicode)
      : columns_(columns),
        rows_(rows),
        unicode_(unicode),
        across_(unicode ? 2 : 1),
        down_(unicode ? 4 : 1),
        cells_(columns * rows) {}

  void line(std::size_t series, double x1, double y1, double x2, double y2) {
    const auto ax = static_cast<double>(dot_x(x1)), ay = static_cast<double>(dot_y(y1));
    const auto bx = static_cast<double>(dot_x(x2)), by = static_cast<double>(dot_y(y2));
    const double steps = std::max({std::fabs(bx - ax), std::fabs(by - ay), 1.0});
    for (double i = 0; i <= steps; ++i) {
      dot(series, static_cast<std::size_t>(std::lround(ax + (bx - ax) * i / steps)),
          static_cast<std::size_t>(std::lround(ay + (by - ay) * i / steps)));
    }
  }

  // Unless a mark of the series stands within `distance` columns in the same row.
  void mark(std::size_t series, double x, double y, std::size_t distance) {
    const std::size_t column = dot_x(x) / across_, row = dot_y(y) / down_;
    for (std::size_t c = column - std::min(column, distance); c < std::min(column + distance + 1, columns_); ++c) {
      const Cell& near = cells_[row * columns_ + c];
      if (distance > 0 && near.marked && near.series == static_cast<std::int32_t>(series)) return;
    }
    cells_[row * columns_ + column].marked = true;
    cells_[row * columns_ + column].series = static_cast<std::int32_t>(series);
  }

  // Only seen where nothing else is drawn.
  void guide(Guide::At at, double position) {
    const bool up = at == Guide::At::kX;
    const std::size_t first = up ? dot_x(position) / across_ : dot_y(position) / down_ * columns_;
    for (std::size_t i = 0; i < (up ? rows_ : columns_); ++i)
      cells_[first + i * (up ? columns_ : 1)].guide |= up ? 1 : 2;
  }

  std::string row(std::size_t row, bool colour) const {  // 0 is the top
    std::string out;
    const Cell* const end = cells_.data() + (row + 1) * columns_;
    for (const Cell* cell = cells_.data() + row * columns_; cell != end;) {
      const std::int32_t series = cell->series;
      std::string same;  // one escape sequence for neighbours of one colour
      for (; cell != end && cell->series == series; ++cell) same += glyph(*cell);
      out += series < 0 ? same : coloured(static_cast<std::size_t>(series), same, colour);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out;
  }

 private:
  struct Cell {
    std::uint8_t dots = 0;
    std::uint8_t guide = 0;  // 1 up the plot, 2 across
    std::int32_t series = -1;
    bool marked = false;
  };
  std::size_t dot_x(double x) const {
    return static_cast<std::size_t>(std::lround(std::clamp(x, 0.0, 1.0) * static_cast<double>(columns_ * across_ - 1)));
  }
  std::size_t dot_y(double y) const {
    return static_cast<std::size_t>(
        std::lround((1 - std::clamp(y, 0.0, 1.0)) * static_cast<double>(rows_ * down_ - 1)));
  }
  void dot(std::size_t series, std::size_t dot_column, std::size_t dot_row) {
    // Unicode numbers the dots of a braille pattern down the left column, down the right one, then the lowest row.
    static constexpr std::uint8_t kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    Cell& target = cells_[dot_row / down_ * columns_ + dot_column / across_];
    target.dots |= kBits[dot_row % down_][dot_column % across_];
    if (!target.marked) target.series = static_cast<std::int32_t>(series);
  }
  std::string glyph(const Cell& cell) const {
    if (cell.marked) return std::string(text_mark(static_cast<std::size_t>(cell.series), unicode_));
    if (cell.dots != 0 && !unicode_) return ".";
    if (cell.dots != 0)  // U+2800 and the dots
      return {'\xE2', static_cast<char>(0xA0 | cell.dots >> 6), static_cast<char>(0x80 | (cell.dots & 0x3F))};
    static constexpr Glyphs kGuides = {" ", "┊", "┄", "┼"}, kAscii = {" ", ":", "-", "+"};
    return std::string((unicode_ ? kGuides : kAscii)[cell.guide]);
  }

  std::size_t columns_, rows_;
  bool unicode_;
  std::size_t across_, down_;  // dots of one character
  std::vector<Cell> cells_;
};

std::string ascii(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) out += text[i];
    if (byte >= 0xC0) out += text.substr(i, 3) == "…" ? '~' : '?';  // for the whole character
  }
  return out;
}

// The first `width` columns of a line; escape sequences take none.
std::string cut(std::string_view line, std::size_t width) {
  std::string out;
  std::size_t column = 0;
  bool escape = false;
  for (const char c : line) {
    const bool follows = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    if (c == '\x1b') escape = true;
    if (!escape && !follows) ++column;
    if (escape || column <= width) out += c;
    if (escape && c == 'm') escape = false;
  }
  return out;
}

// Lines cut to the canvas' width; without Unicode every other character becomes '?'.
std::string fitted(std::string_view text, const TextCanvas& canvas) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line(text.substr(begin, end - begin));
    out += cut(canvas.unicode ? line : ascii(line), canvas.width) + "\n";
    begin = end + 1;
  }
  return out;
}

// Names behind marks or fillings, as many in a line as fit.
std::string legend(const Plot& plot, const TextCanvas& canvas) {
  const bool rows = !plot.rows.empty();
  const std::size_t count = rows ? plot.colours.size() : plot.series.size();
  std::string out, line;
  std::size_t used = 0;
  for (std::size_t i = 0; i < count && count > 1; ++i) {
    const std::string_view key = rows ? filling(i, canvas.unicode) : text_mark(i, canvas.unicode);
    const std::string name =
        base::shorten(base::printable(rows ? plot.colours[i] : plot.series[i].name), canvas.width - 10);
    if (name.empty()) continue;
    const std::size_t needed = 5 + base::display_width(name);
    if (used > 0 && used + needed > canvas.width) out += "  " + line + "\n", line.clear(), used = 0;
    line += (line.empty() ? "" : "   ") + coloured(i, key, canvas.colour) + " " + name;
    used += needed;
  }
  return line.empty() ? out : out + "  " + line + "\n";
}

void draw_series(const Plot& plot, std::size_t index, const PlotAxes& axes, Dots& drawing) {
  const Series& series = plot.series[index];
  for (std::size_t i = 1; i < series.points.size() && series.mark != Mark::kPoints; ++i) {
    const PlotPoint &a = series.points[i - 1], &b = series.points[i];
    if (!axes.shows(a) || !axes.shows(b)) continue;
    drawing.line(index, axes.x.position(a.x), axes.y.position(a.y), axes.x.position(b.x), axes.y.position(b.y));
  }
  // Among several a line without marks gets some too: without colour only they say which series it is.
  if (series.mark == Mark::kLine && plot.series.size() == 1) return;
  const bool crowded = series.points.size() > 24 && series.mark != Mark::kPoints;
  for (const PlotPoint& p : series.points) {
    if (axes.shows(p)) drawing.mark(index, axes.x.position(p.x), axes.y.position(p.y), crowded ? kMarkDistance : 0);
  }
}

std::string guide_lines(const Plot& plot, const PlotAxes& axes, std::size_t width, Dots& drawing) {
  std::string out;
  for (const Guide& guide : plot.guides) {
    const bool up = guide.at == Guide::At::kX;
    const AxisMap& map = up ? axes.x : axes.y;
    if (!map.inside(guide.value)) continue;
    drawing.guide(guide.at, map.position(guide.value));
    out +=
        wrapped(fmt::format("dashed at {}: {}", axis_value(up ? plot.x : plot.y, guide.value), guide.label), 2, width);
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

std::string series_text(const Plot& plot, const TextCanvas& canvas) {
  const std::size_t rows = canvas.height, y_ticks = std::max<std::size_t>(rows / 3, 2);
  std::size_t label_width = 0;
  const PlotAxes vertical(plot, 2, y_ticks);  // how wide its labels are decides the columns that are left
  for (const Tick& tick : vertical.y.ticks())
    label_width = std::max(label_width, base::display_width(tick.label));
  label_width = std::min(label_width, canvas.width / 3);
  const std::size_t columns = canvas.width - label_width - 4;
  const PlotAxes axes(plot, std::max<std::size_t>(columns / 9, 2), y_ticks);
  Dots drawing(columns, rows, canvas.unicode);
  const std::string guides = guide_lines(plot, axes, canvas.width, drawing);
  for (std::size_t i = plot.series.size(); i-- > 0;) draw_series(plot, i, axes, drawing);  // the first one on top

  std::string out = wrapped(axis_title(plot.y), 2, canvas.width);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::string label = y_label(axes.y, row, rows);
    const char* edge = canvas.unicode ? (label.empty() ? "│" : "┤") : (label.empty() ? "|" : "+");
    out += fmt::format("  {:>{}} {}{}\n", label, label_width, edge, drawing.row(row, canvas.colour));
  }
  out += fmt::format("  {:>{}} {}", "", label_width, canvas.unicode ? "└" : "+");
  for (std::size_t i = 0; i < columns; ++i) out += canvas.unicode ? "─" : "-";
  out += "\n" + std::string(label_width + 4, ' ') + x_labels(axes.x, columns) + "\n";
  const std::string x_title = axis_title(plot.x);
  out +=
      wrapped(x_title, label_width + 4 + (columns > x_title.size() ? (columns - x_title.size()) / 2 : 0), canvas.width);
  return out + legend(plot, canvas) + guides + wrapped(not_drawn(plot, axes), 2, canvas.width);
}

// The boxes of a row as cells; what is shorter than half a cell but there at all is a thin line.
std::string cells_of(const PlotRow& row, const PlotAxes& axes, std::size_t columns, const TextCanvas& canvas) {
  std::vector<std::string> cells(columns, " ");
  for (const Box& box : row.boxes) {
    if (!axes.shows(box) || box.begin == box.end) continue;
    const auto cell = [&](double value) {
      const double position = std::clamp(axes.x.position(value), 0.0, 1.0);
      return static_cast<std::size_t>(std::lround(position * static_cast<double>(columns)));
    };
    const auto [from, to] = std::minmax({cell(box.begin), cell(box.end)});
    if (from == to && cells[std::min(from, columns - 1)] == " ")
      cells[std::min(from, columns - 1)] = coloured(box.colour, canvas.unicode ? "▏" : "|", canvas.colour);
    for (std::size_t i = from; i < to; ++i)
      cells[i] = coloured(box.colour, filling(box.colour, canvas.unicode), canvas.colour);
  }
  std::string out;
  for (const std::string& each : cells) out += each;
  return out;
}

std::string rows_text(Plot plot, const TextCanvas& canvas) {
  plot.x.exact = true;  // there are no ticks: bars may use the whole width
  const PlotAxes axes(plot, 2, 2);
  std::size_t labels = 0, values = 0;
  for (const PlotRow& row : plot.rows) {
    labels = std::max(labels, base::display_width(base::printable(row.label)));
    values = std::max(values, base::display_width(base::printable(row.value)));
  }
  labels = std::min(labels, canvas.width * 2 / 5);
  values = std::min(values, canvas.width * 3 / 10);
  const std::size_t columns = canvas.width - labels - values - 6;
  std::string out;
  for (const PlotRow& row : plot.rows) {
    const std::string label = base::shorten(base::printable(row.label), labels);
    std::string line =
        "  " + label + std::string(labels - base::display_width(label) + 2, ' ') + cells_of(row, axes, columns, canvas);
    if (!row.value.empty()) line += "  " + base::shorten(base::printable(row.value), values);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out + legend(plot, canvas);
}

}  // namespace

std::string plot_text(const Plot& plot, const TextCanvas& wanted) {
  TextCanvas canvas = wanted;
  canvas.width = std::clamp<std::size_t>(wanted.width, 40, line_width());
  canvas.height = std::clamp<std::size_t>(wanted.height, 4, 60);
  const std::string head = wrapped(plot.title, 0, canvas.width) + wrapped(plot.note, 2, canvas.width);
  return fitted(head + (plot.rows.empty() ? series_text(plot, canvas) : rows_text(plot, canvas)), canvas);
}

}  // namespace llmprof::report
