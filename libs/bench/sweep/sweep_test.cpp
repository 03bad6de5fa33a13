#include "bench/sweep/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmprof::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::string> keys(const std::vector<Point>& points) {
  std::vector<std::string> all;
  for (const Point& point : points) all.push_back(point.key());
  return all;
}

SweepRequest request(std::vector<base::Axis> axes) {
  return {
      .operators = {"residual_add"}, .axes = std::move(axes), .types = {}, .variants = {}, .device = DeviceKind::kCpu};
}

TEST(Sweep, CountsLikeAnOdometerTheLastAxisFastest) {
  const auto points = plan_sweep(request({{"batch", {1, 2}}, {"seq", {8, 16}}, {"hidden", {64}}}));
  ASSERT_TRUE(points) << points.error().message;
  EXPECT_THAT(keys(*points), ElementsAre("residual_add float32 batch=1 seq=8 hidden=64 cold ",
                                         "residual_add float32 batch=1 seq=16 hidden=64 cold ",
                                         "residual_add float32 batch=2 seq=8 hidden=64 cold ",
                                         "residual_add float32 batch=2 seq=16 hidden=64 cold "));
}

TEST(Sweep, TheDefaultTypeIsTheDevices) {
  SweepRequest wanted = request({{"seq", {8}}});
  wanted.device = DeviceKind::kGpu;
  const auto points = plan_sweep(wanted);
  ASSERT_TRUE(points) << points.error().message;
  EXPECT_EQ(points->front().problem.type, Type::kBfloat16);  // the operator's first
}

TEST(Sweep, VariantsAreInnermostAndEqualPointsOnce) {
  SweepRequest wanted = request({{"seq", {8, 8}}, {"hidden", {64}}});
  wanted.variants.caches = {Cache::kCold, Cache::kHot};
  const auto points = plan_sweep(wanted);
  ASSERT_TRUE(points) << points.error().message;
  EXPECT_THAT(keys(*points), ElementsAre("residual_add float32 batch=1 seq=8 hidden=64 cold ",
                                         "residual_add float32 batch=1 seq=8 hidden=64 hot "));
}

TEST(Sweep, EachImplementationOnAGpu) {
  SweepRequest wanted = request({{"seq", {8}}});
  wanted.device = DeviceKind::kGpu;
  wanted.variants.implementation = "all";
  const auto points = plan_sweep(wanted);
  ASSERT_TRUE(points) << points.error().message;
  EXPECT_THAT(*points, SizeIs(find_operator("residual_add")->cuda.size()));
  EXPECT_EQ(points->front().implementation, find_operator("residual_add")->cuda.front().name);
  wanted.variants.implementation = "abacus";
  EXPECT_THAT(plan_sweep(wanted).error().message, HasSubstr("no operator of this sweep has an implementation abacus"));
}

TEST(Sweep, JoinsTheNamesOfEqualShapes) {
  const Operator& op = *find_operator("residual_add");
  Point a = make_point(op, Type::kFloat32, {{"batch", 1}, {"seq", 8}, {"hidden", 64}});
  Point b = a;
  a.name = "k_proj";
  b.name = "v_proj";
  Point c = a;
  c.name = "proj";  // a part of the others' names, and a name of its own
  const auto points = with_variants({a, b, a, c}, {}, DeviceKind::kCpu);
  ASSERT_TRUE(points);
  ASSERT_THAT(*points, SizeIs(1));
  EXPECT_EQ(points->front().name, "k_proj, v_proj, proj");
}

TEST(Sweep, SaysWhatIsWrong) {
  EXPECT_THAT(plan_sweep(request({{"heads", {8}}})).error().message,
              HasSubstr("no operator of this sweep has an axis heads"));
  EXPECT_THAT(plan_sweep(request({{"heads", {8}}})).error().hint, HasSubstr("residual_add has batch, seq, hidden"));
  EXPECT_THAT(plan_sweep(request({{"batch", {1, 0}}})).error().message, HasSubstr("batch = 0 is less than 1"));
  EXPECT_THAT(plan_sweep({.operators = {"residual_ad"}}).error().hint, HasSubstr("did you mean residual_add?"));
  EXPECT_FALSE(plan_sweep({.operators = {}}));
}

TEST(Sweep, RefusesMoreThanItsMost) {
  std::vector<std::int64_t> many(200);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int64_t>(i) + 1;
  const auto points = plan_sweep(request({{"batch", many}, {"seq", many}, {"hidden", many}}));
  EXPECT_THAT(points.error().message, HasSubstr("8000000 points, more than 10000"));  // 200^3
}

TEST(Sweep, ATypeTheOperatorLacksIsAPointThatSaysSo) {
  SweepRequest wanted = request({{"seq", {8}}});
  wanted.types = {Type::kFloat32, Type::kInt8};
  const auto points = plan_sweep(wanted);
  ASSERT_TRUE(points);
  ASSERT_THAT(*points, SizeIs(2));
  EXPECT_EQ((*points)[0].impossible, "");
  EXPECT_EQ((*points)[1].impossible, "residual_add knows no int8");
  wanted.types = {Type::kInt8};
  EXPECT_FALSE(plan_sweep(wanted));  // nothing at all could be measured
}

TEST(Sweep, AllOperatorsByOneWord) {
  const auto all = chosen_operators({"all", "residual_add"});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), operators().size());
}

}  // namespace
}  // namespace llmprof::bench
