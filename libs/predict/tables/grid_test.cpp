#include "predict/tables/grid.h"

#include <gtest/gtest.h>

#include <cmath>

namespace llmprof::predict {
namespace {

using At = std::vector<double>;

// 10 ns for each unit of the first axis, at least 100.
class LinearFloor : public FloorAt {
 public:
  double ns(std::span<const double> at) const override { return std::max(100.0, 10 * at[0]); }
  bool impossible(std::span<const double> at, double time_ns) const override { return time_ns < ns(at); }
};

// The product of all axes that are not 0.
class ProductFloor : public FloorAt {
 public:
  double ns(std::span<const double> at) const override {
    double product = 1;
    for (const double value : at) product *= std::max(1.0, value);
    return product;
  }
  bool impossible(std::span<const double>, double) const override { return false; }
};

Grid curve(Blend blend, const std::vector<std::pair<double, double>>& points, const FloorAt* floor) {
  Grid grid(1, blend);
  for (const auto& [at, ns] : points) grid.add(At{at}, ns);
  grid.settle(floor);
  return grid;
}

TEST(Grid, MeasuredPointsAreGivenAsTheyAre) {
  const LinearFloor floor;
  for (const Blend blend : {Blend::kUtilisation, Blend::kOverhead}) {
    const Grid grid = curve(blend, {{1, 130}, {64, 900}, {16, 217}}, &floor);
    EXPECT_EQ(grid.ask(At{16}).ns, 217);
    EXPECT_EQ(grid.ask(At{16}).basis, Basis::kMeasured);
    EXPECT_EQ(grid.ask(At{64}).ns, 900);
    EXPECT_EQ(grid.range(0), std::pair(1.0, 64.0));
  }
}

TEST(Grid, BlendsTheShareOfTheRoof) {
  const LinearFloor floor;
  const Grid grid = curve(Blend::kUtilisation, {{20, 400}, {40, 500}}, &floor);  // 50 % and 80 %
  EXPECT_DOUBLE_EQ(grid.ask(At{30}).ns, 300 / 0.65);
  EXPECT_EQ(grid.ask(At{30}).basis, Basis::kInterpolated);
  EXPECT_DOUBLE_EQ(grid.ask(At{80}).ns, 800 / 0.8);  // the edge's share holds
  EXPECT_EQ(grid.ask(At{80}).basis, Basis::kExtrapolated);
  EXPECT_DOUBLE_EQ(grid.ask(At{1}).ns, 100 / 0.5);
}

TEST(Grid, BlendsTheTimeAboveTheFloor) {
  const LinearFloor floor;
  const Grid grid = curve(Blend::kOverhead, {{20, 400}, {40, 500}}, &floor);  // 200 and 100 above
  EXPECT_DOUBLE_EQ(grid.ask(At{30}).ns, 300 + 150);
  EXPECT_DOUBLE_EQ(grid.ask(At{80}).ns, 800 + 100);  // it does not shrink on
  EXPECT_DOUBLE_EQ(grid.ask(At{1}).ns, 100 + 200);   // small calls take as long as the smallest measured one
}

TEST(Grid, TheLineBeyondTheLastPointIsNotOneThroughNoise) {
  const LinearFloor floor;
  const Grid grid = curve(Blend::kOverhead, {{20, 300}, {39, 480}, {40, 600}}, &floor);  // 100, 90 and 200 above
  EXPECT_DOUBLE_EQ(grid.ask(At{80}).ns, 800 + 200 + 40 * (200 - 100) / 20.0);
  const Grid alone = curve(Blend::kOverhead, {{20, 300}}, &floor);
  EXPECT_DOUBLE_EQ(alone.ask(At{80}).ns, 800 * 1.5);
}

TEST(Grid, WithoutAFloorTimesAreLinear) {
  const Grid grid = curve(Blend::kUtilisation, {{20, 400}, {40, 500}}, nullptr);
  EXPECT_EQ(grid.blend(), Blend::kOverhead);
  EXPECT_DOUBLE_EQ(grid.ask(At{30}).ns, 450);
  EXPECT_DOUBLE_EQ(grid.ask(At{80}).ns, 700);
  EXPECT_DOUBLE_EQ(grid.ask(At{5}).ns, 400);
}

TEST(Grid, NeverPastTheRoof) {
  // Points below the floor may be kept (caches, clocks); what follows from them is not faster than the best of them.
  const ProductFloor floor;
  for (const Blend blend : {Blend::kUtilisation, Blend::kOverhead}) {
    const Grid grid = curve(blend, {{10, 9}, {20, 19}, {40, 80}}, &floor);
    EXPECT_EQ(grid.ask(At{20}).ns, 19);
    for (double at = 0.5; at < 200; at += 0.5) {
      const Answer answer = grid.ask(At{at});
      if (answer.basis != Basis::kMeasured) {
        EXPECT_GE(answer.ns, floor.ns(At{at}) * 0.9 - 1e-9) << at;
      }
    }
  }
}

TEST(Grid, NeverPastAnHonestRoof) {
  const LinearFloor floor;
  for (const Blend blend : {Blend::kUtilisation, Blend::kOverhead}) {
    const Grid grid = curve(blend, {{5, 100}, {20, 230}, {40, 400}}, &floor);
    for (double at = 0.5; at < 200; at += 0.5) EXPECT_GE(grid.ask(At{at}).ns, floor.ns(At{at}) - 1e-9) << at;
  }
}

TEST(Grid, MoreWorkNeverTakesLessBetweenMonotonicPoints) {
  const LinearFloor floor;
  const Grid grid = curve(Blend::kUtilisation, {{1, 130}, {16, 217}, {64, 900}, {128, 1500}}, &floor);
  double before = 0;
  for (double at = 1; at <= 300; ++at) {
    const double ns = grid.ask(At{at}).ns;
    EXPECT_GE(ns, before) << at;
    before = ns;
  }
}

TEST(Grid, ImpossibleTimesAreDroppedAndRepeatedOnesAveraged) {
  const LinearFloor floor;
  Grid grid(1, Blend::kUtilisation);
  grid.add(At{20}, 400);
  grid.add(At{20}, 500);
  grid.add(At{30}, 299);
  grid.add(At{40}, 800);
  const Grid::Settled settled = grid.settle(&floor);
  EXPECT_EQ(settled.duplicates, 1);
  EXPECT_EQ(settled.impossible, 1);
  EXPECT_EQ(grid.points(), 2);
  EXPECT_EQ(grid.ask(At{20}).ns, 450);
}

// Chunk, its context, decodes, their context: as attention has them, with cells that were not measured.
Grid attention(const FloorAt* floor, bool whole = false) {
  Grid grid(4, Blend::kOverhead, {true, false, true, false});
  for (const double chunk : {0.0, 16.0, 32.0}) {
    for (const double before : {0.0, 64.0}) {
      for (const double decodes : {0.0, 1.0, 4.0}) {
        for (const double context : {0.0, 16.0, 64.0}) {
          if ((chunk == 0 && before > 0) || (decodes == 0) != (context == 0) || chunk + decodes == 0) continue;
          if (!whole && chunk == 32 && decodes == 4 && context == 64) continue;  // did not fit
          grid.add(At{chunk, before, decodes, context}, 1e6 + 10 * chunk + before + 5 * decodes + 2 * context);
        }
      }
    }
  }
  grid.settle(floor);
  return grid;
}

TEST(Grid, FourAxesAreLinearWhereTheTimesAre) {
  const Grid grid = attention(nullptr, true);
  EXPECT_NEAR(grid.ask(At{24, 32, 2, 40}).ns, 1e6 + 240 + 32 + 10 + 80, 1e-6);
  EXPECT_EQ(grid.ask(At{24, 32, 2, 40}).basis, Basis::kInterpolated);
  EXPECT_EQ(grid.ask(At{16, 64, 0, 0}).basis, Basis::kMeasured);
}

TEST(Grid, NoDecodesAreNotTheLowerEndOfDecodes) {
  Grid grid(4, Blend::kOverhead, {true, false, true, false});
  grid.add(At{0, 0, 1, 16}, 500);
  grid.add(At{16, 0, 1, 16}, 700);
  grid.add(At{16, 0, 0, 0}, 100);
  grid.settle(nullptr);
  EXPECT_EQ(grid.ask(At{8, 0, 1, 16}).ns, 700);  // not between 500 and 700
  EXPECT_EQ(grid.ask(At{8, 0, 1, 16}).basis, Basis::kExtrapolated);
  EXPECT_EQ(grid.ask(At{16, 0, 0, 0}).ns, 100);
}

TEST(Grid, AbsentCellsFollowFromTheirNeighbours) {
  const ProductFloor floor;
  const Grid grid = attention(&floor);
  const Answer absent = grid.ask(At{32, 0, 4, 64});
  EXPECT_EQ(absent.basis, Basis::kExtrapolated);
  EXPECT_GE(absent.ns, grid.ask(At{32, 0, 4, 16}).ns);
  const Answer beside = grid.ask(At{24, 0, 4, 64});  // one of its two neighbours is absent
  EXPECT_TRUE(std::isfinite(beside.ns));
  EXPECT_EQ(beside.basis, Basis::kExtrapolated);
}

TEST(Grid, LeftOutPointsArePredictedByTheirNeighbours) {
  const Grid grid = curve(Blend::kOverhead, {{1, 10}, {2, 50}, {3, 30}}, nullptr);
  const auto between = grid.ask_without(At{2}, 0);
  ASSERT_TRUE(between);
  EXPECT_EQ(between->ns, 20);
  EXPECT_EQ(between->basis, Basis::kInterpolated);
  EXPECT_EQ(grid.ask_without(At{1}, 0)->basis, Basis::kExtrapolated);
  const Grid alone = curve(Blend::kOverhead, {{1, 10}}, nullptr);
  EXPECT_FALSE(alone.ask_without(At{1}, 0));
}

// 100 x^2: between the points, and beyond them.
TEST(Grid, PowersOfAnAxis) {
  Grid grid(2, Blend::kPower);
  for (const double batch : {1.0, 8.0}) {
    for (const double tokens : {128.0, 512.0, 2048.0})
      grid.add(std::array{batch, tokens}, 100 * batch * tokens * tokens);
  }
  grid.settle(nullptr);
  for (const auto& [batch, tokens] : {std::pair{1.0, 300.0}, {8.0, 1500.0}, {3.0, 700.0}, {1.0, 4096.0}, {16.0, 512.0}, {8.0, 100.0}})
    EXPECT_NEAR(grid.ask(std::array{batch, tokens}).ns / (100 * batch * tokens * tokens), 1, 1e-9) << tokens;
  EXPECT_EQ(grid.ask(std::array{1.0, 4096.0}).basis, Basis::kExtrapolated);
  Grid one(1, Blend::kPower);  // one point is no power: in proportion
  one.add(std::array{512.0}, 1000);
  one.settle(nullptr);
  EXPECT_NEAR(one.ask(std::array{256.0}).ns, 500, 1e-9);
  EXPECT_NEAR(one.ask(std::array{1024.0}).ns, 2000, 1e-9);
}

}  // namespace
}  // namespace llmprof::predict
