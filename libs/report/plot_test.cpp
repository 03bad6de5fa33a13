#include "report/plot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text_table.h"
#include "report/plot_axis.h"

namespace llmprof::report {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> labels(const Axis& axis, std::vector<double> values, std::size_t ticks) {
  std::vector<std::string> out;
  const AxisMap map(axis, values, ticks);
  for (const Tick& tick : map.ticks()) out.push_back(tick.label);
  return out;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++found;
  return found;
}

Plot two_lines() {
  Plot plot{.title = "a <b> & \"c\"", .note = "", .x = {"batch", "sequences", Scale::kLog2, false}, .y = {"time", "s"}};
  plot.series.push_back({"rising", {{1, 0.001}, {2, 0.002}, {4, 0.004}}});
  plot.series.push_back({"flat", {{1, 0.003}, {2, 0.003}, {4, 0.003}}, Mark::kLine});
  return plot;
}

using Labels = std::vector<std::string>;

TEST(AxisMap, LinearTicksAreRoundNumbersWithOnePrefix) {
  // 0 … 12.3 ms with about 5 ticks: 12.3 / 5 = 2.46, the next round step is 2.5.
  EXPECT_EQ(labels({"", "s"}, {0, 0.0123}, 5), (Labels{"0", "2.5 ms", "5.0 ms", "7.5 ms", "10.0 ms", "12.5 ms"}));
  EXPECT_EQ(labels({"", "B"}, {0, 2.4e9}, 5), (Labels{"0", "0.5 GB", "1.0 GB", "1.5 GB", "2.0 GB", "2.5 GB"}));
  EXPECT_EQ(labels({"", "", Scale::kLinear, false}, {-1, 1}, 4), (Labels{"-1.0", "-0.5", "0", "0.5", "1.0"}));
}

TEST(AxisMap, LinearBeginsAtZeroUnlessAllIsFarFromIt) {
  EXPECT_EQ(labels({}, {40, 100}, 5).front(), "0");
  EXPECT_EQ(labels({}, {90, 100}, 5).front(), "90");
}

TEST(AxisMap, PowersOfTwoArePlainUntil65536) {
  const Axis axis{"context", "tokens", Scale::kLog2, false};
  EXPECT_EQ(labels(axis, {1, 8}, 10), (Labels{"1", "2", "4", "8"}));
  EXPECT_EQ(labels(axis, {65536, 1 << 20}, 10), (Labels{"65536", "128 Ki", "256 Ki", "512 Ki", "1 Mi"}));
  EXPECT_EQ(labels(axis, {0.25, 1}, 10), (Labels{"1/4", "1/2", "1"}));
  EXPECT_EQ(labels(axis, {1, 1 << 20}, 5), (Labels{"1", "16", "256", "4096", "65536", "1 Mi"}));
}

TEST(AxisMap, DecadesGetTheirOwnPrefixAndEndsMoveIn) {
  // 3 ms … 700 ms: ends 2 ms and 1 s (no 1, 2, 5 between 500 ms and 700 ms).
  const Axis axis{"", "s", Scale::kLog10};
  EXPECT_EQ(labels(axis, {0.003, 0.7}, 5), (Labels{"10 ms", "100 ms", "1 s"}));
  EXPECT_EQ(labels(axis, {0.003, 0.7}, 9),
            (Labels{"2 ms", "5 ms", "10 ms", "20 ms", "50 ms", "100 ms", "200 ms", "500 ms", "1 s"}));
  const std::vector<double> values = {0.003, 0.7};
  const AxisMap map(axis, values, 5);
  EXPECT_NEAR(map.position(0.002), 0, 1e-9);
  EXPECT_NEAR(map.position(1), 1, 1e-9);
}

TEST(AxisMap, PositionsOfWhatIsSpannedAreInside) {
  const std::vector<double> extremes = {-1e300, -1, -1e-300, 0, 1e-300, 3, 1e15, 1e15 + 1, 1e300};
  for (const Scale scale : {Scale::kLinear, Scale::kLog2, Scale::kLog10}) {
    for (const double a : extremes) {
      for (const double b : extremes) {
        const std::vector<double> values = {a, b, kNaN, INFINITY};
        const AxisMap map({"", "s", scale}, values, 7);
        EXPECT_LE(map.ticks().size(), 24U);
        for (const double value : {a, b}) {
          if (!map.drawable(value)) continue;
          EXPECT_GE(map.position(value), -1e-6) << a << " " << b;
          EXPECT_LE(map.position(value), 1 + 1e-6) << a << " " << b;
        }
      }
    }
  }
}

TEST(Thinned, KeepsThePeakOfEachColumn) {
  std::vector<PlotPoint> points;
  for (int i = 0; i < 10'000; ++i) points.push_back({static_cast<double>(i), i == 7'777 ? 100.0 : 1.0});
  const std::vector<double> ends = {0, 10'000};
  const std::vector<PlotPoint> few = thinned(points, AxisMap({}, ends, 5), 50);
  EXPECT_LE(few.size(), 4 * 51U);
  EXPECT_TRUE(std::any_of(few.begin(), few.end(), [](const PlotPoint& p) { return p.y == 100; }));
}

TEST(PlotSvg, EscapesAndDrawsEverySeries) {
  const std::string svg = plot_svg(two_lines());
  EXPECT_NE(svg.find("a &lt;b&gt; &amp; &quot;c&quot;"), std::string::npos);
  EXPECT_EQ(svg.find("<b>"), std::string::npos);
  EXPECT_EQ(count(svg, "<circle"), 3 + 1U);      // three points of "rising" and its key in the legend
  EXPECT_EQ(count(svg, "<path class=\"s"), 3U);  // two lines, and the key of the one without marks
  EXPECT_EQ(count(svg, "<svg"), 1U);
  EXPECT_NE(svg.find("prefers-color-scheme:dark"), std::string::npos);
  EXPECT_NE(svg.find("rising: 4 ms at 4 sequences"), std::string::npos);
}

TEST(PlotSvg, ThemesAreFixedOnRequest) {
  EXPECT_EQ(plot_svg(two_lines(), {.theme = Theme::kLight}).find("prefers-color-scheme"), std::string::npos);
  EXPECT_EQ(plot_svg(two_lines(), {.theme = Theme::kLight}).find("#14171a"), std::string::npos);
  EXPECT_NE(plot_svg(two_lines(), {.theme = Theme::kDark}).find(".page{fill:#14171a}"), std::string::npos);
}

TEST(PlotSvg, LabelsKeepOffEachOtherAndBackdropsOutOfTheLegend) {
  Plot plot = two_lines();
  plot.series.push_back({"roof", {{1, 0.004}, {4, 0.004}}, Mark::kLine, true});
  // Four places around one point; the fifth label finds none.
  for (const char* text : {"one", "two", "three", "four", "five"}) plot.labels.push_back({2, 0.002, text});
  const std::string svg = plot_svg(plot);
  EXPECT_NE(svg.find(">four<"), std::string::npos);
  EXPECT_EQ(svg.find(">five<"), std::string::npos);
  EXPECT_EQ(count(svg, "<path class=\"roof\""), 1U);
  EXPECT_EQ(svg.find(">roof<"), std::string::npos);
}

TEST(PlotSvg, LongNotesAreBroken) {
  Plot plot = two_lines();
  plot.note = std::string(60, 'a') + " " + std::string(60, 'b') + " " + std::string(60, 'c');
  EXPECT_EQ(count(plot_svg(plot, {.width = 860}), "class=\"note\">"), 2 + 2U);  // and the titles of two axes
}

TEST(PlotSvg, AnUnknownPointBreaksTheLineAndIsCounted) {
  Plot plot{.x = {"x"}, .y = {"y"}};
  plot.series.push_back({"a", {{1, 1}, {2, kNaN}, {3, 3}, {4, 4}}, Mark::kLine});
  const std::string svg = plot_svg(plot);
  const std::string path = svg.substr(svg.find("<path class=\"s0\""));
  EXPECT_EQ(std::count(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(path.find("/>")), 'M'), 2);
  EXPECT_NE(svg.find("1 of 4 points not shown"), std::string::npos);
}

TEST(PlotText, DrawsWhereTheValuesAre) {
  // 0…4 in both directions: from the lower left to the upper right corner, 35 columns (40 - 1 of labels - 4) and 6
  // rows. One row per 6.8 columns: the lowest row holds the columns 0…3.
  Plot plot{.x = {"x"}, .y = {"y"}};
  plot.series.push_back({"a", {{0, 0}, {4, 4}}, Mark::kLineAndPoints});
  const std::vector<std::string> text = lines(plot_text(plot, {.width = 40, .height = 6, .unicode = false}));
  ASSERT_EQ(text.size(), 1 + 6 + 1 + 1 + 1U);  // title of y, drawing, base line, labels, title of x
  EXPECT_EQ(text[1].back(), '*');
  EXPECT_EQ(text[1].size(), 40U);
  EXPECT_EQ(text[6], "  0 +*...");
  EXPECT_EQ(text[8].back(), '4');
}

TEST(PlotText, MarksTellSeriesApartWithoutColour) {
  const std::string text = plot_text(two_lines());
  EXPECT_NE(text.find("● rising   ■ flat"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(plot_text(two_lines(), {.colour = true}).find("\x1b[34m"), std::string::npos);
}

TEST(PlotText, WithoutUnicodeEverythingIsAscii) {
  Plot plot = two_lines();
  plot.title = "naïve …";
  plot.guides = {{Guide::At::kX, 3, "limit"}, {Guide::At::kY, 0.002, "half"}};
  const std::string text = plot_text(plot, {.unicode = false});
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
  EXPECT_NE(text.find("na?ve ~"), std::string::npos);
}

TEST(PlotText, NoLineIsWiderThanTheCanvas) {
  Plot plot = two_lines();
  plot.title = std::string(300, 't');
  plot.note = std::string(90, 'n') + " " + std::string(90, 'n');
  plot.series[0].name = std::string(200, 's');
  plot.guides = {{Guide::At::kY, 0.0025, std::string(200, 'g')}};
  for (const std::size_t width : {0, 40, 63, 100, 1000}) {
    for (const std::string& line : lines(plot_text(plot, {.width = width})))
      EXPECT_LE(base::display_width(line), std::clamp<std::size_t>(width, 40, 100)) << line;
  }
}

TEST(PlotText, NothingToDrawSaysSo) {
  EXPECT_NE(plot_text({}).find("there are no points"), std::string::npos);
  EXPECT_NE(plot_svg({}).find("there are no points"), std::string::npos);
}

TEST(Bars, AWaterfallEndsWhereItsPartsEnd) {
  const Plot bars = waterfall_plot({"measured", 10, ""}, {{"idle", 4, ""}, {"faster", -1, ""}, {"floor", 7, ""}});
  ASSERT_EQ(bars.rows.size(), 4U);
  EXPECT_EQ(bars.rows[1].boxes[0].begin, 10);
  EXPECT_EQ(bars.rows[1].boxes[0].end, 6);
  EXPECT_EQ(bars.rows[2].boxes[0].end, 7);  // a negative part turns back
  EXPECT_EQ(bars.rows[3].boxes[0].end, 0);
}

TEST(BarsText, CellsAreProportional) {
  Plot bars = waterfall_plot({"whole", 10, "10 s"}, {{"half", 5, "5 s"}, {"none", 0, "0 s"}, {"rest", 5, "5 s", 1}});
  const std::vector<std::string> text = lines(plot_text(bars, {.width = 40, .unicode = false}));
  // 40 columns - labels of 5 - values of 4 - gaps of 6 = 25 cells for 10 s; half of them round to 13 and 12.
  ASSERT_EQ(text.size(), 4U);
  EXPECT_EQ(text[0], "  whole  #########################  10 s");
  EXPECT_EQ(text[1], "  half                ############  5 s");
  EXPECT_EQ(text[2], "  none                              0 s");
  EXPECT_EQ(text[3], "  rest   =============              5 s");
}

TEST(BarsText, AShortStretchIsStillSeen) {
  const Plot bars = waterfall_plot({"whole", 1000, ""}, {{"tiny", 1, ""}, {"rest", 999, ""}});
  EXPECT_NE(lines(plot_text(bars))[1].find("▏"), std::string::npos);
}

TEST(BarsSvg, StacksAndNamesKinds) {
  Plot bars{.title = "<parts>", .x = {"weights", "B"}, .colours = {"embedding", "mlp"}};
  bars.rows.push_back({"a&b", {{0, 0, 1e9}, {1, 1e9, 2e9}, {1, kNaN, 1}}, "2 GB"});
  const std::string svg = plot_svg(bars);
  EXPECT_NE(svg.find("&lt;parts&gt;"), std::string::npos);
  EXPECT_NE(svg.find("a&amp;b: mlp: 1 GB"), std::string::npos);
  EXPECT_EQ(count(svg, "<rect class=\"f1\""), 1 + 1U);  // its key and one stretch: what is unknown is not drawn
}

}  // namespace
}  // namespace llmprof::report
