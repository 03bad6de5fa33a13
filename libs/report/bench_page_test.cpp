#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text_table.h"
#include "report/bench.h"

namespace llmprof::report {
namespace {

using analyze::BenchPoint;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

BenchPoint point(std::int64_t m, double median_ns) {
  BenchPoint made;
  made.op = "gemm";
  made.type = "bfloat16";
  made.cache = "cold";
  made.implementation = "cublaslt";
  made.timer = "CUPTI";
  made.axes = {{"m", m}, {"n", 4096}, {"k", 4096}};
  made.status = "measured";
  made.median_ns = median_ns;
  made.low_ns = median_ns * 0.99;
  made.high_ns = median_ns * 1.02;
  made.flops_per_s = 1e12;
  made.bytes_per_s = 2e9;
  made.floor_ns = median_ns / 4;
  made.of_roof = 0.25;
  made.bound = "memory";
  made.denominator = "4.27 TB/s read (measured)";
  made.tensor_bytes = 4'000'000;
  made.workspace_bytes = 1'000'000;
  return made;
}

BenchPoint skipped(const std::string& reason) {
  BenchPoint made = point(1 << 20, 0);
  made.status = "skipped";
  made.reason = reason;
  made.median_ns.reset();
  made.low_ns.reset();
  made.high_ns.reset();
  made.flops_per_s.reset();
  made.bytes_per_s.reset();
  made.of_roof.reset();
  return made;
}

BenchPage page(std::vector<BenchPoint> points) {
  BenchPage made{.run = "x.llmprof", .info = {}, .results = {}};
  made.results.points = std::move(points);
  made.results.devices = {{.kind = "gpu", .name = "Test GPU"}};
  return made;
}

TEST(BenchPage, WhatVariesIsAColumnTheRestStandsAbove) {
  const std::string text = to_text(page({point(1, 2000), point(1024, 50'000)}), false);
  EXPECT_THAT(text, HasSubstr("\ngemm\n  bfloat16, n=4096 k=4096, cold cache, cublaslt, timed by CUPTI\n"
                              "     m     time    95 %   memory  FLOP/s     B/s  of roof  bound\n"
                              "     1  2.00 us  ±2.0 %  5.00 MB  1.00 T  2.00 G   25.0 %  memory\n"
                              "  1024  50.0 us  ±2.0 %  5.00 MB  1.00 T  2.00 G   25.0 %  memory\n"));
  EXPECT_THAT(text, HasSubstr("4.27 TB/s read (measured)"));  // every share says of what
}

TEST(BenchPage, FlagsAndWhatWasNotMeasured) {
  BenchPoint noisy = point(1, 2000);
  noisy.noisy = true;
  noisy.throttled = 3;
  noisy.reason = "another program uses this GPU";
  const std::string text = to_text(page({skipped("does not fit: 9 TB"), noisy}), false);
  EXPECT_THAT(text, HasSubstr("noisy, 3 throttled, *"));
  EXPECT_THAT(text, HasSubstr("* another program uses this GPU"));
  const std::size_t table = text.find("2.00 us"), rest = text.find("Skipped");
  ASSERT_NE(rest, std::string::npos);
  EXPECT_LT(table, rest);  // last
  EXPECT_THAT(text.substr(rest),
              HasSubstr("gemm bfloat16 m=1048576 n=4096 k=4096, cublaslt\n      does not fit: 9 TB\n"));
}

TEST(BenchPage, NoLineIsWiderThanThePage) {
  std::vector<BenchPoint> points;
  for (int i = 0; i < 4; ++i) {
    BenchPoint wide = point(1000 + i, 123'456);
    wide.axes.insert(wide.axes.end(), {{"heads", 100 + i}, {"kv_heads", 200 + i}, {"head_dim", 300 + i}});
    wide.name = std::string(60, 'n') + std::to_string(i);
    wide.noisy = i == 1;
    points.push_back(wide);
  }
  std::string reason;
  for (int i = 0; i < 60; ++i) reason += "reason ";
  points.push_back(skipped(reason));
  const std::string text = to_text(page(points), false);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    EXPECT_LE(base::display_width(line), 100u) << line;
    begin = end + 1;
  }
}

TEST(BenchPage, ForeignTextDoesNoHarm) {
  BenchPoint hostile = point(1, 2000);
  hostile.name = "\x1b[31m<script>";
  BenchPoint other = point(2, 2000);
  other.name = "=cmd()";
  const BenchPage made = page({hostile, other});
  EXPECT_THAT(to_text(made, false), Not(HasSubstr("\x1b[31m")));
  EXPECT_THAT(to_csv(made), Not(HasSubstr(",=cmd()")));
  BenchPage foreign = page({point(1, 10), point(2, 20)});
  for (BenchPoint& each : foreign.results.points) each.op = "../../etc/x";
  EXPECT_EQ(to_plots(foreign).front().name, "------etc-x-m");
  for (const BenchPlot& plot : to_plots(made)) EXPECT_THAT(plot_svg(plot.plot), Not(HasSubstr("<script>")));
}

TEST(BenchPage, UnknownIsNullInJsonAndEmptyInCsv) {
  const BenchPage made = page({skipped("no memory")});
  base::Json json;
  to_json(made, json);
  const base::Json& first = json["points"][0];
  EXPECT_TRUE(first["time"].is_null());
  EXPECT_TRUE(first["bytes_per_s"].is_null());
  EXPECT_EQ(first["axes"]["m"], 1 << 20);
  EXPECT_EQ(first["reason"], "no memory");
  EXPECT_THAT(to_csv(made), HasSubstr("skipped,no memory,0,,,,"));
}

TEST(BenchPage, APlotForEachAxisThatVaries) {
  std::vector<BenchPoint> points;
  for (const std::int64_t m : {1, 16, 256}) {
    for (const std::int64_t n : {1024, 4096}) {
      BenchPoint made = point(m, static_cast<double>(m * n));
      made.axes[1].second = n;
      points.push_back(made);
    }
  }
  const std::vector<BenchPlot> plots = to_plots(page(points));
  ASSERT_THAT(plots, SizeIs(2));
  EXPECT_EQ(plots[0].name, "gemm-m");
  EXPECT_EQ(plots[0].plot.x.scale, Scale::kLog2);
  ASSERT_THAT(plots[0].plot.series, SizeIs(2));
  EXPECT_EQ(plots[0].plot.series[0].name, "n 1024");
  ASSERT_THAT(plots[0].plot.series[0].points, SizeIs(3));
  EXPECT_DOUBLE_EQ(plots[0].plot.series[0].points[1].y, 16 * 1024 * 1e-9);
  EXPECT_EQ(plots[1].name, "gemm-n");
  EXPECT_THAT(plots[1].plot.series, SizeIs(3));
  const std::vector<BenchPlot> one = to_plots(page({point(1, 10), point(2, 20)}));
  ASSERT_THAT(one, SizeIs(1));
  EXPECT_THAT(one[0].plot.series, SizeIs(2));  // measured, and the floor
  EXPECT_THAT(to_plots(page({point(1, 10)})), SizeIs(0));
}

TEST(BenchPage, ComparedWithVerdicts) {
  BenchComparePage made{.a = "a.llmprof", .b = "b.llmprof", .comparison = {}};
  made.comparison.changes = {{.a = point(1, 2000),
                              .b = point(1, 1000),
                              .ratio = 0.5,
                              .low = 0.49,
                              .high = 0.51,
                              .p = 1e-9,
                              .verdict = analyze::BenchVerdict::kFaster},
                             {.a = point(2, 2000), .b = point(2, 2001)}};
  made.comparison.ratio = 0.7;
  made.comparison.confounders = {"the devices differ: X and Y"};
  made.comparison.only_b = {point(64, 10)};
  const std::string text = to_text(made, false);
  EXPECT_THAT(text, HasSubstr("B is faster in 1, slower in 0, the same in 1. Geometric mean of B / A: 0.700."));
  EXPECT_THAT(text, HasSubstr("Beware: the devices differ: X and Y."));
  EXPECT_THAT(text, HasSubstr("  1  2.00 us  1.00 us  0.500  0.490-0.510  <0.001  faster\n"));
  EXPECT_THAT(text, HasSubstr("Only in B\n  gemm bfloat16 m=64"));
  base::Json json;
  to_json(made, json);
  EXPECT_EQ(json["points"][0]["verdict"], "faster");
  EXPECT_EQ(json["only_b"][0]["axes"]["m"], 64);
}

}  // namespace
}  // namespace llmprof::report
