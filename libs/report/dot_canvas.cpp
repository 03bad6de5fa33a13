#include "report/dot_canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace llmprof::report {

std::string_view text_mark(std::size_t series, bool unicode) {
  static constexpr std::array<std::string_view, 8> kMarks = {"●", "■", "▲", "◆", "○", "□", "△", "◇"};
  static constexpr std::array<std::string_view, 8> kAscii = {"*", "o", "+", "x", "#", "@", "%", "&"};
  return unicode ? kMarks[series % kMarks.size()] : kAscii[series % kAscii.size()];
}

std::string text_coloured(std::size_t series, std::string_view text, bool colour) {
  static constexpr std::array<int, 6> kCodes = {34, 33, 32, 31, 35, 36};
  return colour ? fmt::format("\x1b[{}m{}\x1b[0m", kCodes[series % kCodes.size()], text) : std::string(text);
}

DotCanvas::DotCanvas(std::size_t columns, std::size_t rows, bool unicode)
    : columns_(std::max<std::size_t>(columns, 1)),
      rows_(std::max<std::size_t>(rows, 1)),
      unicode_(unicode),
      dots_across_(unicode ? 2 : 1),
      dots_down_(unicode ? 4 : 1),
      cells_(columns_ * rows_) {}

std::size_t DotCanvas::dot_x(double x) const {
  const double last = static_cast<double>(columns_ * dots_across_ - 1);
  return static_cast<std::size_t>(std::lround(std::clamp(x, 0.0, 1.0) * last));
}

std::size_t DotCanvas::dot_y(double y) const {
  const double last = static_cast<double>(rows_ * dots_down_ - 1);
  return static_cast<std::size_t>(std::lround((1 - std::clamp(y, 0.0, 1.0)) * last));
}

DotCanvas::Cell& DotCanvas::cell(std::size_t dot_column, std::size_t dot_row) {
  return cells_[dot_row / dots_down_ * columns_ + dot_column / dots_across_];
}

void DotCanvas::dot(std::size_t series, std::size_t dot_column, std::size_t dot_row) {
  // Unicode numbers the dots of a braille pattern down the left column, down the right one, then the lowest row.
  static constexpr std::uint8_t kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
  Cell& target = cell(dot_column, dot_row);
  target.dots |= kBits[dot_row % dots_down_][dot_column % dots_across_];
  if (!target.marked) target.series = static_cast<std::int32_t>(series);
}

void DotCanvas::line(std::size_t series, double x1, double y1, double x2, double y2) {
  const auto ax = static_cast<double>(dot_x(x1)), ay = static_cast<double>(dot_y(y1));
  const auto bx = static_cast<double>(dot_x(x2)), by = static_cast<double>(dot_y(y2));
  const double steps = std::max({std::fabs(bx - ax), std::fabs(by - ay), 1.0});
  for (double i = 0; i <= steps; ++i) {
    dot(series, static_cast<std::size_t>(std::lround(ax + (bx - ax) * i / steps)),
        static_cast<std::size_t>(std::lround(ay + (by - ay) * i / steps)));
  }
}

void DotCanvas::mark(std::size_t series, double x, double y) {
  Cell& target = cell(dot_x(x), dot_y(y));
  target.marked = true;
  target.series = static_cast<std::int32_t>(series);
}

bool DotCanvas::marked_near(std::size_t series, double x, double y, std::size_t distance) const {
  const std::size_t column = dot_x(x) / dots_across_, row = dot_y(y) / dots_down_;
  for (std::size_t c = column > distance ? column - distance : 0; c <= std::min(column + distance, columns_ - 1); ++c) {
    const Cell& near = cells_[row * columns_ + c];
    if (near.marked && near.series == static_cast<std::int32_t>(series)) return true;
  }
  return false;
}

void DotCanvas::guide_at_x(double x) {
  const std::size_t column = dot_x(x) / dots_across_;
  for (std::size_t row = 0; row < rows_; ++row) cells_[row * columns_ + column].guide |= 1;
}

void DotCanvas::guide_at_y(double y) {
  const std::size_t row = dot_y(y) / dots_down_;
  for (std::size_t column = 0; column < columns_; ++column) cells_[row * columns_ + column].guide |= 2;
}

std::string DotCanvas::glyph(const Cell& cell) const {
  if (cell.marked) return std::string(text_mark(static_cast<std::size_t>(cell.series), unicode_));
  if (cell.dots != 0 && !unicode_) return ".";
  if (cell.dots != 0) {  // U+2800 and the dots
    return {'\xE2', static_cast<char>(0xA0 | cell.dots >> 6), static_cast<char>(0x80 | (cell.dots & 0x3F))};
  }
  static constexpr std::array<std::string_view, 4> kGuides = {" ", "┊", "┄", "┼"};
  static constexpr std::array<std::string_view, 4> kAscii = {" ", ":", "-", "+"};
  return std::string(unicode_ ? kGuides[cell.guide] : kAscii[cell.guide]);
}

std::string DotCanvas::row(std::size_t row, bool colour) const {
  std::string out;
  const Cell* const end = cells_.data() + (row + 1) * columns_;
  for (const Cell* cell = cells_.data() + row * columns_; cell != end;) {
    const std::int32_t series = cell->series;
    std::string same;  // one escape sequence for neighbours of one colour
    for (; cell != end && cell->series == series; ++cell) same += glyph(*cell);
    out += series < 0 ? same : text_coloured(static_cast<std::size_t>(series), same, colour);
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return out;
}

}  // namespace llmprof::report
