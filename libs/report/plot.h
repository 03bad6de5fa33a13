#pragma once
// Plots of numbers that are already computed: lines and points over two axes, and horizontal bars, each as SVG text and
// as terminal text. Pure functions; any text and any number may come in: names are escaped, values that cannot be drawn
// (not finite, or not positive on a logarithmic axis) are left out and counted below the plot.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace llmprof::report {

enum class Scale : std::uint8_t { kLinear, kLog2, kLog10 };

struct Axis {
  std::string title;  // "batch", "time per output token"
  std::string unit;   // of the values as they are given: "s", "B", "FLOP/s", "sequences"; "" none
  Scale scale = Scale::kLinear;
  bool prefixes = true;  // labels as "5 ms", "2 GB"; false: plain numbers, the unit stands in the title
  bool whole = false;    // numbers of things: no ticks between them
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

struct Plot {
  std::string title;
  std::string note;  // below the title: what was held fixed, what the denominator is
  Axis x, y;
  std::vector<Series> series;
  std::vector<Guide> guides;
  std::vector<PlotLabel> labels;  // only of SVG
};

// One stretch of a bar. A stacked bar has several that touch; a step of a waterfall has one that begins where the step
// before it ended.
struct Stretch {
  std::size_t kind = 0;  // index into Bars::kinds: its colour and name
  double begin = 0, end = 0;
};

struct Bar {
  std::string label;
  std::vector<Stretch> stretches;
  std::string value;  // text beside the bar: "1.53 ms   42.3 %"
};

struct Bars {
  std::string title;
  std::string note;
  Axis axis;                       // linear
  std::vector<std::string> kinds;  // the legend; one or none: no legend is drawn
  std::vector<Bar> bars;           // from top to bottom
};

// The whole as the first bar and its parts below, from its end down: each is as long as its value and begins where the
// one before it ended. A negative value turns back, so that everything adds up.
struct Drop {
  std::string label;
  double value = 0;
  std::string text;      // beside the bar
  std::size_t kind = 0;  // index into Bars::kinds, which the caller may fill
};
Bars waterfall_bars(const Drop& whole, const std::vector<Drop>& drops);

enum class Theme : std::uint8_t { kAsViewer, kLight, kDark };

struct SvgSize {
  int width = 860, height = 480;  // pixels; bars choose their own height
  Theme theme = Theme::kAsViewer;
};

struct TextCanvas {
  std::size_t width = 100;  // columns no line exceeds, 40 at least
  std::size_t height = 18;  // rows of the drawing itself
  bool unicode = true;      // false: ASCII only
  bool colour = false;      // escape sequences; without them marks and fillings tell series apart
};

// A whole SVG document of fixed size: no script, no font or style from elsewhere; light or dark as the viewer prefers,
// or as asked for.
std::string plot_svg(const Plot& plot, const SvgSize& size = {});
std::string bars_svg(const Bars& bars, const SvgSize& size = {});

// Lines with '\n'.
std::string plot_text(const Plot& plot, const TextCanvas& canvas = {});
std::string bars_text(const Bars& bars, const TextCanvas& canvas = {});

}  // namespace llmprof::report
