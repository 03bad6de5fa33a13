#include "analyze/bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/test_run.h"

namespace llmprof::analyze {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

struct Made {
  std::int64_t m = 1;
  double base_ns = 1000;  // the first of 40 samples; each further one takes 1 ns more
  std::string status = "measured";
  double clock_mhz = 1000;
};

// A run of products with n = 2 and k = 3: 12 m FLOPs.
trace::Run run_of(const std::string& folder, const std::vector<Made>& points) {
  auto writer = trace::RunWriter::create(folder);
  EXPECT_TRUE(writer);
  const auto name = [&](std::string_view text) { return writer->strings().intern(text); };
  writer->add(trace::DeviceRow{.id = 1, .kind = name("cpu"), .name = name("Abacus"), .units = 1});
  std::int64_t id = 0;
  for (const Made& made : points) {
    trace::BenchRow row{.id = ++id, .device_id = 1, .op = name("gemm"), .type = name("float32")};
    row.cache = name("cold");
    row.status = name(made.status);
    row.flops = 12.0 * static_cast<double>(made.m);
    row.read_bytes = 80;
    row.write_bytes = 20;
    row.floor_ns = 250;
    row.clock_mhz = made.clock_mhz;
    if (made.status == "measured") {
      row.samples = 40;
      row.median_ns = made.base_ns + 19.5;
      for (int i = 0; i < 40; ++i) writer->add(trace::BenchSampleRow{id, i, made.base_ns + i});
    } else {
      row.reason = name("no memory");
    }
    writer->add(row);
    std::int32_t place = 0;
    for (const auto& [axis, value] : {std::pair<const char*, std::int64_t>{"m", made.m}, {"n", 2}, {"k", 3}}) {
      writer->add(trace::BenchAxisRow{id, place++, name(axis), value});
    }
  }
  EXPECT_TRUE(writer->finish({}));
  auto run = trace::Run::open(folder);
  EXPECT_TRUE(run);
  return std::move(*run);
}

class BenchTest : public ::testing::Test {
 protected:
  trace::Run run(const std::string& name, const std::vector<Made>& points) { return run_of(folder_ / name, points); }
  trace::TestFolder folder_;
};

TEST_F(BenchTest, PointsWithTheirRates) {
  const trace::Run made = run("a", {{.m = 4, .base_ns = 480.5}, {.m = 8, .status = "skipped"}});
  const auto results = bench_results(made);
  ASSERT_TRUE(results) << results.error().message;
  ASSERT_THAT(results->points, SizeIs(2));
  const BenchPoint& point = results->points[0];
  EXPECT_EQ(point.sizes(), "m=4 n=2 k=3");
  EXPECT_DOUBLE_EQ(*point.flops_per_s, 48 / 500e-9);  // 12 * 4 FLOPs in 480.5 + 19.5 ns
  EXPECT_DOUBLE_EQ(*point.bytes_per_s, 100 / 500e-9);
  EXPECT_DOUBLE_EQ(*point.of_roof, 0.5);  // 250 of 500 ns
  EXPECT_FALSE(results->points[1].flops_per_s);
  EXPECT_FALSE(results->points[1].measured());
  EXPECT_EQ(results->devices.front().name, "Abacus");
}

TEST_F(BenchTest, ARunWithItselfIsTheSame) {
  const trace::Run made = run("a", {{.m = 1}, {.m = 2, .base_ns = 5000}});
  const auto comparison = compare_benches(made, made, 0.01);
  ASSERT_TRUE(comparison) << comparison.error().message;
  ASSERT_THAT(comparison->changes, SizeIs(2));
  for (const BenchChange& change : comparison->changes) {
    EXPECT_EQ(change.verdict, BenchVerdict::kSame);
    EXPECT_DOUBLE_EQ(change.ratio, 1);
  }
  EXPECT_DOUBLE_EQ(*comparison->ratio, 1);
  EXPECT_THAT(comparison->confounders, SizeIs(0));
}

TEST_F(BenchTest, FasterAndSlowerNeedSignificanceAndTheThreshold) {
  // m = 1: 1.005 times as long, and every sample of b is longer than any of a: significant, but under 1 %.
  const trace::Run a = run("a", {{.m = 1, .base_ns = 100'000}, {.m = 2, .base_ns = 1000}, {.m = 3, .base_ns = 2000}});
  const trace::Run b = run("b", {{.m = 1, .base_ns = 100'500}, {.m = 2, .base_ns = 2000}, {.m = 3, .base_ns = 1000}});
  const auto comparison = compare_benches(a, b, 0.01);
  ASSERT_TRUE(comparison);
  ASSERT_THAT(comparison->changes, SizeIs(3));
  EXPECT_EQ(comparison->changes[0].verdict, BenchVerdict::kSame);
  EXPECT_LT(comparison->changes[0].p, 0.05);
  EXPECT_EQ(comparison->changes[1].verdict, BenchVerdict::kSlower);
  EXPECT_EQ(comparison->changes[2].verdict, BenchVerdict::kFaster);
  const auto lax = compare_benches(a, b, 1.5);
  EXPECT_EQ(lax->changes[1].verdict, BenchVerdict::kSame);
}

TEST_F(BenchTest, WhatCannotBeComparedIsListed) {
  const trace::Run a = run("a", {{.m = 1}, {.m = 2}, {.m = 3}});
  const trace::Run b = run("b", {{.m = 2, .status = "failed"}, {.m = 3, .clock_mhz = 900}, {.m = 4}});
  const auto comparison = compare_benches(a, b, 0.01);
  ASSERT_TRUE(comparison);
  ASSERT_THAT(comparison->only_a, SizeIs(1));
  EXPECT_EQ(comparison->only_a[0].sizes(), "m=1 n=2 k=3");
  ASSERT_THAT(comparison->only_b, SizeIs(1));
  EXPECT_EQ(comparison->only_b[0].sizes(), "m=4 n=2 k=3");
  ASSERT_THAT(comparison->not_compared, SizeIs(1));
  EXPECT_EQ(comparison->not_compared[0].why, "failed in B: no memory");
  EXPECT_THAT(comparison->changes, SizeIs(1));
  EXPECT_THAT(comparison->confounders, Contains(HasSubstr("the clock differed by more than 3 % in 1 of 1 points")));
}

TEST_F(BenchTest, ARunWithoutABenchmarkIsAnError) {
  const trace::Run empty = run("a", {});
  EXPECT_THAT(compare_benches(empty, empty, 0.01).error().message, HasSubstr("holds no benchmark"));
}

}  // namespace
}  // namespace llmprof::analyze
