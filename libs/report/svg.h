#pragma once
// Pieces of an SVG document: its frame with the colours of both modes, text that is escaped, a legend.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/plot.h"

namespace llmprof::report {

inline constexpr std::size_t kColours = 8;  // further series use them again, with another mark

std::string svg_escaped(std::string_view text);  // for content and attributes; control characters made visible
double svg_text_width(std::string_view text);    // pixels of 12 px text, estimated generously

enum class Anchor { kStart, kMiddle, kEnd };
std::string svg_text(double x, double y, std::string_view text, Anchor anchor = Anchor::kStart,
                     std::string_view style_class = "");
std::string svg_line(double x1, double y1, double x2, double y2, std::string_view style_class);
// A mark of series `index`: circles, squares, diamonds and triangles in turn. `tip` is shown by browsers on hovering.
std::string svg_mark(std::size_t index, double x, double y, std::string_view tip);

std::string svg_begin(int width, int height, std::string_view title, Theme theme = Theme::kAsViewer);
inline constexpr std::string_view kSvgEnd = "</svg>\n";

// Broken at spaces into lines of at most `width` pixels of 12 px text.
std::vector<std::string> svg_lines(std::string_view text, double width);
// With its end cut off where it is wider than that; "" if not even three letters fit.
std::string svg_fitting(std::string_view text, double width);

// Title, note and legend from the top left, broken where the width demands; `bottom` is where they end.
struct SvgHead {
  std::string text;
  double bottom = 0;
};
enum class LegendKey { kBox, kMark, kLine };
SvgHead svg_head(std::string_view title, std::string_view note, const std::vector<std::string>& names,
                 const std::vector<LegendKey>& keys, int width);  // one key for each name

}  // namespace llmprof::report
