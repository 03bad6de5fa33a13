#pragma once
// A plot is a value: axes, and what is drawn between them. Either series of points, or rows of boxes below each other
// (bars, the lanes of a timeline, the levels of a flame graph). It becomes SVG, PNG or terminal text. Pure functions;
// any text and any number may come in: names are escaped, values that cannot be drawn (not finite, or not positive on a
// logarithmic axis) are left out and counted below the plot.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace llmprof::report {

enum class Scale : std::uint8_t { kLinear, kLog2, kLog10 };

struct Axis {
  std::string title;  // "batch", "time per output token"; rows without a title have no visible axis
  std::string unit;   // of the values as they are given: "s", "B", "FLOP/s", "sequences"; "" none
  Scale scale = Scale::kLinear;
  bool prefixes = true;  // labels as "5 ms", "2 GB"; false: plain numbers, the unit stands in the title
  bool whole = false;    // counts: no ticks between whole numbers
  bool exact = false;    // from the lowest to the highest value, else up to the next round numbers; linear only
  std::vector<double> spans = {};  // values that are inside the plot whatever is drawn
};

struct PlotPoint {
  double x = 0, y = 0;
};

enum class Mark : std::uint8_t { kLine, kPoints, kLineAndPoints };

struct Series {
  std::string name;
  std::vector<PlotPoint> points;  // in the order in which a line connects them; one that is not finite breaks the line
  Mark mark = Mark::kLineAndPoints;
  bool backdrop = false;  // what the others are held against, behind them in the list: grey in SVG, in no legend there
};

// A straight dashed line across the plot: a limit, a ridge, a peak.
struct Guide {
  enum class At : std::uint8_t { kX, kY };
  At at = At::kX;
  double value = 0;
  std::string label;
  bool low = false;  // of a line up the plot: the label stands at its foot, where a roofline leaves room
};

// Text at a point, beside it where there is room. Those that find none are left out: the first ones matter most.
struct PlotLabel {
  double x = 0, y = 0;
  std::string text;
  bool on_line = false;  // names a line that ends there: stands above or below it, not on it
};

// A rectangle in a row, from `begin` to `end` on the x axis.
struct Box {
  std::size_t colour = 0;
  double begin = 0, end = 0;
  std::string text = {};  // inside, as much of it as fits; the box is then lighter
  std::string tip = {};   // shown by browsers on hovering; "": what the row, its colour and its length say
  double opacity = 1;
};

// The lowest and highest reading at one moment.
struct RangePoint {
  double x = 0, low = 0, high = 0;
};

struct PlotRow {
  std::string label;  // left of it
  std::vector<Box> boxes = {};
  std::string value = {};              // right of it: "1.53 ms   42.3 %"
  std::string detail = {};             // below the label
  std::vector<RangePoint> range = {};  // a curve as high as the row, on a scale of its own, in the colour `colour`
  std::size_t colour = 0;
  bool heading = false;          // only a label, which begins at the left edge: the rows below belong to it
  double height = 26, gap = 10;  // pixels in SVG; boxes are `height - gap` high
  bool ruled = false;            // a faint line below the boxes
};

struct Plot {
  std::string title;
  std::string note;  // below the title: what was held fixed, what the denominator is
  Axis x, y;         // rows have no y axis
  std::vector<Series> series = {};
  std::vector<Guide> guides = {};
  std::vector<PlotLabel> labels = {};     // only in SVG
  std::vector<PlotRow> rows = {};         // from top to bottom; without rows the plot is made of series
  std::vector<std::string> colours = {};  // what the boxes' colours stand for, the legend of rows; "": not in it
  bool joined = false;                    // each row begins where the one above it ended: a waterfall
};

// The whole as the first row and its parts below, from its end down: each is as long as its value and begins where the
// one before it ended. A negative value turns back, so that everything adds up.
struct Drop {
  std::string label;
  double value = 0;
  std::string text;  // beside the bar
  std::size_t colour = 0;
};
Plot waterfall_plot(const Drop& whole, const std::vector<Drop>& drops);

enum class Theme : std::uint8_t { kAsViewer, kLight, kDark };
inline constexpr std::size_t kColours = 8;  // further series use them again, with another mark; the last one is grey

struct SvgSize {
  int width = 860, height = 480;  // pixels; rows make their own height
  Theme theme = Theme::kAsViewer;
};

struct TextCanvas {
  std::size_t width = 100;  // columns no line exceeds, 40 to 100
  std::size_t height = 18;  // rows of the drawing itself, 4 to 60; rows make their own
  bool unicode = true;      // false: ASCII only
  bool colour = false;      // escape sequences; without them marks and fillings tell series apart
};

// A whole SVG document of fixed size: no script, no font or style from elsewhere; light or dark as the viewer prefers,
// or as asked for.
std::string plot_svg(const Plot& plot, const SvgSize& size = {});
// Lines with '\n'.
std::string plot_text(const Plot& plot, const TextCanvas& canvas = {});
// The bytes of a PNG file, `scale` times as large as the SVG says, on white. It is drawn by librsvg and cairo, which
// are loaded when a PNG is asked for: kUnsupported without them, with the names of their packages.
Result<std::string> svg_to_png(const std::string& svg, double scale = 2);
// As `file` ends: .png, else SVG.
Result<std::string> plot_bytes(const Plot& plot, std::string_view file, const SvgSize& size = {});

std::string svg_escaped(std::string_view text);  // for content and attributes; control characters made visible

}  // namespace llmprof::report
