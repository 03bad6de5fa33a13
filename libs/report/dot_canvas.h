#pragma once
// A drawing made of characters: lines out of braille dots (2 x 4 per character; ASCII: one '.' each) and marks on top.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmprof::report {

// Marks tell series apart without colour: index modulo the number of marks.
std::string_view text_mark(std::size_t series, bool unicode);
// Text in the colour of a series, or as it is.
std::string text_coloured(std::size_t series, std::string_view text, bool colour);

class DotCanvas {
 public:
  DotCanvas(std::size_t columns, std::size_t rows, bool unicode);

  // Positions are 0…1 from the left and from the bottom.
  void line(std::size_t series, double x1, double y1, double x2, double y2);
  void mark(std::size_t series, double x, double y);
  void guide_at_x(double x);  // only where nothing else is drawn
  void guide_at_y(double y);

  std::string row(std::size_t row, bool colour) const;  // 0 is the top
  // Whether a mark of the series stands within `distance` columns in the row of this position.
  bool marked_near(std::size_t series, double x, double y, std::size_t distance) const;

 private:
  struct Cell {
    std::uint8_t dots = 0;
    std::uint8_t guide = 0;  // 1 across x, 2 across y
    std::int32_t series = -1;
    bool marked = false;
  };
  std::size_t dot_x(double x) const;
  std::size_t dot_y(double y) const;
  Cell& cell(std::size_t dot_column, std::size_t dot_row);
  void dot(std::size_t series, std::size_t dot_column, std::size_t dot_row);
  std::string glyph(const Cell& cell) const;

  std::size_t columns_, rows_;
  bool unicode_;
  std::size_t dots_across_, dots_down_;  // of one character
  std::vector<Cell> cells_;
};

}  // namespace llmprof::report
