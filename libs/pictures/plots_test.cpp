#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pictures/plots.h"

namespace llmprof::pictures {
namespace {

using report::Mark;
using testing::HasSubstr;
using testing::Not;

const std::string kHostile = "<script>alert('x')</script>\x1b[31m\"&";

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++found;
  return found;
}

// x="…" of the rect behind a title.
double attribute(const std::string& svg, const std::string& title, const std::string& name) {
  const std::size_t at = svg.find("<title>" + title);
  EXPECT_NE(at, std::string::npos) << title;
  const std::size_t value = svg.find(" " + name + "=\"", at) + name.size() + 3;
  return std::stod(svg.substr(value));
}

struct Head {
  std::string title = {}, note = {};
  int width = 860;
};

std::string svg_of(report::Plot plot, const Head& head) {
  plot.title = head.title, plot.note = head.note;
  return plot_svg(plot, {.width = head.width});
}

std::string flame_svg(const Flame& flame, const std::string& stage, const Head& head) {
  return svg_of(flame_plot(flame, 0, stage, head.width), head);
}

std::string timeline_svg(const Timeline& timeline, const Head& head) { return svg_of(timeline_plot(timeline), head); }

// root: prefill 1 of 10, decode 9 of 10 with a Python function of 6, in which a kernel of 6.
Flame small_flame() {
  Flame flame;
  flame.nodes = {{-1, "all", "root", {}},
                 {0, "prefill", "stage", {100, 0, 0}},
                 {0, "decode", "stage", {300, 0, 0}},
                 {2, "forward (model.py:12)", "python", {}},
                 {3, kHostile, "kernel", {600, 0, 0}}};
  flame.total = {1000, 0, 0};
  return flame;
}

TEST(FlamePicture, WidthsAreSharesAndTheHeavierStandsFirst) {
  // Width 832 inside the margins of 16: decode 900 of 1000 is 748.8 less half a pixel, from 16; prefill begins behind
  // it.
  const std::string svg = flame_svg(small_flame(), "", {.title = "t", .note = "n", .width = 864});
  EXPECT_NEAR(attribute(svg, "decode: 900 ns, 90.0 % of 1.00 us", "width"), 748.3, 0.01);
  EXPECT_NEAR(attribute(svg, "decode", "x"), 16, 0.01);
  EXPECT_NEAR(attribute(svg, "prefill: 100 ns, 10.0 %", "x"), 16 + 748.8, 0.01);
  // The outermost is at the bottom: each row is 18 above the one below it.
  EXPECT_NEAR(attribute(svg, "decode", "y") - attribute(svg, "forward", "y"), 18, 0.01);
}

TEST(FlamePicture, OfOneStageItIsTheWhole) {
  const std::string svg = flame_svg(small_flame(), "decode", {.title = "t", .note = "n", .width = 864});
  EXPECT_NEAR(attribute(svg, "decode: 900 ns, 100.0 % of 900 ns", "width"), 831.5, 0.01);
  EXPECT_THAT(svg, Not(HasSubstr("prefill")));
}

TEST(FlamePicture, NamesAreEscaped) {
  const std::string svg = flame_svg(small_flame(), "", {.title = kHostile, .note = kHostile});
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, Not(HasSubstr("\x1b")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;"));
}

TEST(FlamePicture, WithoutNodesItSaysSo) { EXPECT_THAT(flame_svg({}, "", {}), HasSubstr("Nothing to draw")); }

TEST(FlamePicture, ThinBoxesAreLeftOut) {
  Flame flame = small_flame();
  for (int i = 0; i < 1000; ++i) flame.nodes.push_back({0, "thin", "other", {0.01, 0, 0}});
  EXPECT_EQ(count(flame_svg(flame, "", {}), "<title>thin"), 0U);
}

Timeline small_timeline() {
  Timeline timeline;
  timeline.run = {0, 10'000};
  timeline.window = {1000, 3000};
  timeline.names = {"decode", "prefill", kHostile, "void scale<4>(float*)"};
  timeline.lanes = {{.kind = Lane::Kind::kStages,
                     .group = "steps",
                     .name = "stages",
                     .table = "step",
                     .slices = {{.begin_ns = 1000, .end_ns = 2000, .name = 0, .stage = 0},
                                {.begin_ns = 2000, .end_ns = 3000, .name = 1, .stage = 1}}},
                    {.kind = Lane::Kind::kStream,
                     .group = "GPU 0",
                     .name = "stream 7",
                     .table = "kernel",
                     .slices = {{.begin_ns = 1500, .end_ns = 2000, .name = 3, .stage = 0},
                                {.begin_ns = 2500, .end_ns = 2600, .name = 2, .stage = 1, .count = 5, .busy = 0.5F}}}};
  timeline.curves = {{"GPU 0", "power", "W", {1000, 2000, 3000}, {100, 200, 150}, {110, 220, 160}}};
  timeline.slices_in_window = 8;
  return timeline;
}

TEST(TimelinePicture, SlicesStandWhereTheyWere) {
  const std::string svg = timeline_svg(small_timeline(), {.title = "t", .note = "n", .width = 1000});
  const double left = attribute(svg, "decode", "x"), stage = attribute(svg, "decode", "width");
  // The window is 2000 ns: a stage is one half of it, the kernel a quarter, from the middle of the first stage on.
  EXPECT_NEAR(attribute(svg, "scale&lt;4&gt;: 500 ns", "width"), stage / 2, 0.02);
  EXPECT_NEAR(attribute(svg, "scale&lt;4&gt;", "x"), left + stage / 2, 0.02);
  EXPECT_NEAR(left + 2 * stage, 1000 - 26, 0.02);  // the margin on the right
  EXPECT_THAT(svg, HasSubstr("5 of them, 50.0 % busy"));
  EXPECT_THAT(svg, HasSubstr("100 W to 220 W"));
}

TEST(TimelinePicture, NamesAreEscaped) {
  Timeline timeline = small_timeline();
  timeline.lanes[0].group = timeline.lanes[0].name = timeline.curves[0].name = kHostile;
  const std::string svg = timeline_svg(timeline, {.title = kHostile});
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, Not(HasSubstr("\x1b")));
}

TEST(TimelinePicture, OfOneStageNamesHaveTheColours) {
  Timeline timeline = small_timeline();
  for (Lane& lane : timeline.lanes) {
    for (Slice& slice : lane.slices) slice.stage = 0;
  }
  const std::string svg = timeline_svg(timeline, {});
  EXPECT_THAT(svg, HasSubstr(">scale&lt;4&gt;</text>"));  // in the legend
  EXPECT_THAT(svg, HasSubstr(">others</text>"));
}

TEST(TimelinePicture, ManyLanesAreCutDownToThoseOfMostTime) {
  Timeline timeline = small_timeline();
  for (int i = 0; i < 100; ++i) {
    timeline.lanes.push_back({.kind = Lane::Kind::kRanges,
                              .group = "threads",
                              .name = "thread " + std::to_string(i),
                              .slices = {{.begin_ns = 1000, .end_ns = 1001 + i, .name = 0, .stage = 0}}});
  }
  const std::string svg = timeline_svg(timeline, {});
  EXPECT_THAT(svg, HasSubstr("stream 7"));
  EXPECT_THAT(svg, HasSubstr(">thread 99<"));
  EXPECT_THAT(svg, Not(HasSubstr(">thread 5<")));
}

Roofline small_roofline() {
  Roofline roofline{.device = "H200"};
  roofline.roofs = {{"bfloat16", 989e12, std::nullopt, "spec"},
                    {"float16", 989e12, std::nullopt, "spec"},
                    {"float32", 67e12, std::nullopt, "spec"},
                    {"read bandwidth", std::nullopt, 4.8e12, "spec"}};
  roofline.points = {{"stage", "decode", "decode", 0.5, 0.7e12, 1e9, "analytic"},
                     {"operator", "mlp.up_proj", "decode", 0.5, 1.4e12, 5e8, "analytic"},
                     {"operator", "lm_head", "prefill", 0.5, 2e12, 5e7, "analytic"},
                     {"module", "layers.0.mlp", "decode", 0.5, 1e12, 5e7, "analytic"}};
  return roofline;
}

TEST(RooflinePicture, RoofsBendAtTheirRidge) {
  const report::Plot plot = roofline_plot(small_roofline(), "");
  const auto roof = std::find_if(plot.series.begin(), plot.series.end(),
                                 [](const auto& s) { return s.name == "float32 67.0 TFLOP/s, spec"; });
  ASSERT_NE(roof, plot.series.end());
  EXPECT_NEAR(roof->points[1].x, 67e12 / 4.8e12, 1e-9);
  EXPECT_NEAR(roof->points[0].y, roof->points[0].x * 4.8e12, 1);
  EXPECT_EQ(std::count_if(plot.series.begin(), plot.series.end(), [](const auto& s) { return s.mark == Mark::kLine; }),
            2);
  EXPECT_THAT(plot.note, HasSubstr("4.80 TB/s (spec)"));
}

TEST(RooflinePicture, OfOneStageOnlyItsPoints) {
  const report::Plot plot = roofline_plot(small_roofline(), "decode");
  std::vector<std::string> labels;
  for (const report::PlotLabel& label : plot.labels) {
    if (!label.on_line) labels.push_back(label.text);  // those of the roofs
  }
  EXPECT_THAT(labels, testing::ElementsAre("decode", "mlp.up_proj"));
}

// Decode counted: 1.4 TFLOP/s at 0.4 FLOP/B of DRAM and 0.2 of the L2 cache, which reads 10 TB/s.
TEST(RooflinePicture, CountedPointsHaveMarksOfTheirOwn) {
  Roofline roofline = small_roofline();
  EXPECT_THAT(roofline_plot(roofline, "").x.title, Not(HasSubstr("counted")));
  roofline.roofs.push_back({"L2 bandwidth", std::nullopt, 10e12, "measured"});
  const std::size_t before = roofline_plot(roofline, "").series.size();  // nothing of the cache: no roof of it
  roofline.points.push_back({"stage", "decode", "decode", 0.4, 1.4e12, 1e9, "counters", "dram"});
  roofline.points.push_back({"stage", "decode", "decode", 0.2, 1.4e12, 1e9, "counters", "l2"});
  roofline.points.push_back({"kernel", "gemm", "", 0.3, 2e12, 1e8, "counters", "dram"});
  const report::Plot plot = roofline_plot(roofline, "");
  std::vector<std::string> names;
  for (const report::Series& series : plot.series)
    if (series.mark == Mark::kPoints) names.push_back(series.name);
  EXPECT_THAT(names,
              testing::ElementsAre("decode", "decode, counted: DRAM bytes", "decode, counted: L2 bytes",
                                   "operators of decode", "operators of prefill", "kernels, counted: DRAM bytes"));
  EXPECT_EQ(plot.series.size(), before + 4);  // three series of points, and the roof of the cache
  EXPECT_EQ(plot.series.back().name, "L2 bandwidth 10.0 TB/s, measured");
  EXPECT_NEAR(plot.series.back().points[1].x, 989e12 / 10e12, 1e-9);
  EXPECT_THAT(plot.note, HasSubstr("4.80 TB/s"));  // the slope stays that of memory
  EXPECT_THAT(plot.x.title, HasSubstr("counted"));
}

TEST(StepsPicture, StagesOfFewStepsAreOnlyDrawnWhenAskedFor) {
  const std::vector<analyze::StepCurve> curves = {{.stage = "prefill",
                                                   .steps = 1,
                                                   .least_ns = 5,
                                                   .median_ns = 5,
                                                   .most_ns = 5,
                                                   .begin_ns = {0},
                                                   .duration_ns = {5}},
                                                  {.stage = "decode",
                                                   .steps = 6,
                                                   .least_ns = 1,
                                                   .median_ns = 2,
                                                   .most_ns = 4,
                                                   .begin_ns = {0, 4, 8},
                                                   .duration_ns = {2, 4, 2}}};
  const report::Plot all = steps_plot(curves, "");
  ASSERT_EQ(all.series.size(), 1U);
  EXPECT_EQ(all.series[0].points[1].x, 2);  // six steps in three pieces: the second begins at step 2
  EXPECT_NEAR(all.series[0].points[1].y, 4e-9, 1e-15);
  EXPECT_THAT(all.note, HasSubstr("longest of each piece"));
  EXPECT_EQ(steps_plot(curves, "prefill").series.size(), 1U);
}

TEST(MemoryPicture, MemoryStaysUntilItChanges) {
  analyze::Summary summary;
  summary.host.memory = {{1'000'000'000, 10}, {2'000'000'000, 30}};
  summary.device_memory.devices = {{.name = "H200", .total_bytes = 151'000'000'000, .over_time = {{1'500'000'000, 7}}}};
  const report::Plot plot = memory_plot(summary);
  ASSERT_EQ(plot.series.size(), 2U);
  EXPECT_NEAR(plot.series[0].points[0].x, 0.5, 1e-9);  // since the first reading of all
  ASSERT_EQ(plot.series[1].points.size(), 3U);
  EXPECT_EQ(plot.series[1].points[1].y, 10);
  EXPECT_NEAR(plot.series[1].points[1].x, 1, 1e-9);
  EXPECT_THAT(plot.note, HasSubstr("H200 has 151 GB"));
}

}  // namespace
}  // namespace llmprof::pictures
