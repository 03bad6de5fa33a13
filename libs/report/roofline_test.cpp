#include "report/roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text_table.h"

namespace llmprof::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

hw::Peak peak(std::string quantity, std::string type, double value, std::string unit) {
  return {std::move(quantity), std::move(type), value, std::move(unit), "measured", "by hand"};
}
std::vector<hw::Peak> gpu_peaks() {
  return {peak("flops", "float32", 50e12, "FLOP/s"),        peak("flops", "float16", 800e12, "FLOP/s"),
          peak("flops", "bfloat16", 810e12, "FLOP/s"),      peak("flops", "float32_vector", 60e12, "FLOP/s"),
          peak("flops", "float64_vector", 30e12, "FLOP/s"), peak("bandwidth", "read", 4e12, "B/s"),
          peak("bandwidth", "read, L2", 6e12, "B/s"),       peak("latency", "kernel launch", 2.5e-6, "s")};
}
RooflinePage gpu_page() {
  RooflinePage page{.device = {.kind = "gpu", .name = "NVIDIA H200", .clock_mhz = 1980}};
  for (const hw::Peak& each : gpu_peaks()) page.rows.push_back({each, ""});
  page.rows.push_back({{.quantity = "flops", .type = "float8", .unit = "FLOP/s"}, "no such unit"});
  page.notes = {"another program uses this GPU"};
  page.seconds = 12;
  return page;
}

TEST(RooflineText, ValueShareOfSpecAndRidge) {
  const std::string text = to_text(gpu_page());
  EXPECT_THAT(text, HasSubstr("gpu: NVIDIA H200, measured in 12.0 s\n"));
  // 810 / 989 = 81.9 %; 810e12 / 4e12 = 202.5 FLOP per byte
  EXPECT_THAT(text, ::testing::ContainsRegex(
                        "bfloat16 +810 TFLOP/s +81.9 % +202 +by hand|bfloat16 +810 TFLOP/s +81.9 % +203 +by hand"));
  EXPECT_THAT(text, ::testing::ContainsRegex("read +4.00 TB/s +83.3 % +- +by hand"));
  EXPECT_THAT(text, ::testing::ContainsRegex("kernel launch +2.50 µs|kernel launch +2.50 us"));
  EXPECT_THAT(text, HasSubstr("not measured: float8: no such unit"));
  EXPECT_THAT(text, HasSubstr("note: another program uses this GPU"));
  EXPECT_THAT(
      text,
      HasSubstr("bfloat16 989 TFLOP/s, float32_vector 67.0 TFLOP/s\n  (dense, 1830 MHz, NVIDIA H200 product page)"));
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    EXPECT_LE(base::display_width(text.substr(begin, end - begin)), 100u);
    begin = end + 1;
  }
}

TEST(RooflineText, StreamsOfACpuAreAGrid) {
  RooflinePage page{.device = {.kind = "cpu", .name = "a CPU"}};
  for (const char* type : {"read", "write", "copy, L1", "read, L1, one core", "triad, one core"}) {
    page.rows.push_back({peak("bandwidth", type, 2e10, "B/s"), ""});
  }
  const std::string text = to_text(page);
  EXPECT_THAT(text, ::testing::ContainsRegex("memory +20.0 GB/s +20.0 GB/s +- +-\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("L1 +- +- +20.0 GB/s +-\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("L1, one core +20.0 GB/s +- +- +-\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("memory, one core +- +- +- +20.0 GB/s\n"));
}

TEST(RooflineJson, UnknownIsNullWithItsReason) {
  base::Json json;
  to_json(gpu_page(), json);
  ASSERT_EQ(json["peaks"].size(), 9u);
  const base::Json& bfloat16 = json["peaks"][2];
  EXPECT_EQ(bfloat16["value"], 810e12);
  EXPECT_EQ(bfloat16["ridge_flops_per_byte"], 202.5);
  EXPECT_EQ(bfloat16["spec"]["value"], 989e12);
  EXPECT_NEAR(bfloat16["share_of_spec"].get<double>(), 810.0 / 989, 1e-12);
  EXPECT_TRUE(bfloat16["why"].is_null());
  const base::Json& float8 = json["peaks"][8];
  EXPECT_TRUE(float8["value"].is_null());
  EXPECT_TRUE(float8["share_of_spec"].is_null());
  EXPECT_EQ(float8["why"], "no such unit");
  EXPECT_FALSE(json["peaks"][5].contains("ridge_flops_per_byte"));
  EXPECT_EQ(json["seconds"], 12);
}

TEST(RooflinePlot, RoofsMeetAtTheRidge) {
  const Plot plot = roofline_plot("a GPU", gpu_peaks());
  // float16 and bfloat16 differ by less than 3 %: one roof at the higher. float32_vector has float32, float64_vector
  // none.
  ASSERT_EQ(plot.series.size(), 3u);
  EXPECT_EQ(plot.series[0].name, "bfloat16, float16 810 TFLOP/s");
  EXPECT_EQ(plot.series[1].name, "float32 50.0 TFLOP/s");
  EXPECT_EQ(plot.series[2].name, "float64_vector 30.0 TFLOP/s");
  ASSERT_EQ(plot.series[0].points.size(), 3u);
  EXPECT_EQ(plot.series[0].points[1].x, 202.5);
  EXPECT_EQ(plot.series[0].points[1].y, 810e12);
  EXPECT_EQ(plot.series[0].points[0].y, plot.series[0].points[0].x * 4e12);
  EXPECT_EQ(plot.guides.size(), 3u);
  EXPECT_THAT(plot_text(plot), HasSubstr("bfloat16, float16"));
}

TEST(RooflinePlot, PointsOfOneNameAreOneSeries) {
  const Plot plot =
      roofline_plot("a GPU", gpu_peaks(), {{"gemm", 300, 7e14}, {"rmsnorm", 0.5, 1e12}, {"gemm", 100, 3e14}});
  ASSERT_EQ(plot.series.size(), 5u);
  EXPECT_EQ(plot.series[3].name, "gemm");
  EXPECT_EQ(plot.series[3].points.size(), 2u);
  EXPECT_EQ(plot.series[3].mark, Mark::kPoints);
}

TEST(RooflinePlot, AnythingMayBeMissing) {
  EXPECT_EQ(roofline_plot("a GPU", {}).series.size(), 0u);
  const Plot flat = roofline_plot("a GPU", {peak("flops", "float32", 1e12, "FLOP/s")});
  EXPECT_EQ(flat.series[0].points.size(), 2u);
  EXPECT_TRUE(flat.guides.empty());
  EXPECT_THAT(plot_svg(flat), HasSubstr("not known"));
  EXPECT_THAT(plot_svg(roofline_plot("<&>", gpu_peaks(), {{"x", 0, -1}})), Not(HasSubstr("<&>")));
}

TEST(Png, IsDrawnWhereTheLibraryIs) {
  const Result<std::string> png =
      svg_to_png(plot_svg(roofline_plot("a GPU", gpu_peaks()), {.width = 400, .height = 300}));
  if (!png && png.error().code == ErrorCode::kUnsupported) {
    EXPECT_THAT(png.error().hint, HasSubstr("librsvg2-2"));
    GTEST_SKIP() << png.error().message;
  }
  ASSERT_TRUE(png) << png.error().message;
  EXPECT_EQ(png->substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(png->substr(12, 4), "IHDR");
  const auto width = static_cast<unsigned char>((*png)[18]) * 256 + static_cast<unsigned char>((*png)[19]);
  EXPECT_EQ(width, 800);  // twice 400
}

TEST(Png, WhatIsNoPictureIsAnError) {
  for (const char* bad :
       {"", "<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1e9\" height=\"1e9\"/>", "hello"}) {
    EXPECT_FALSE(svg_to_png(bad)) << bad;
  }
}

}  // namespace
}  // namespace llmprof::report
