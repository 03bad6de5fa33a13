#include "predict/implementation/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predict/implementation/price.h"

namespace llmprof::predict {
namespace {

using ::testing::ElementsAre;

ProbedKernel kernel(std::string name, std::string op, double tokens, double blocks, double ns,
                    std::string stage = "decode") {
  return {.kernel = std::move(name),
          .op = std::move(op),
          .scale = "rows",
          .stage = std::move(stage),
          .graph = true,
          .tokens = tokens,
          .blocks = blocks,
          .threads = 128,
          .ns = ns};
}

StepKernel recorded(std::string name, std::int64_t blocks) {
  StepKernel out;
  out.name = std::move(name), out.blocks = blocks, out.threads = 128;
  return out;
}

StageSteps decode_stage(std::vector<StepKernel> kernels) {
  StageSteps stage{.stage = "decode", .batch = 8, .rows = 8, .contexts = 4096, .graph = true, .launches = 1};
  stage.kernels = std::move(kernels);
  return stage;
}

ProgramCost cost_of(StageSteps stage, ProbedRows rows) {
  Implementation implementation;
  implementation.run = "a run";
  implementation.stages.push_back(std::move(stage));
  auto cost = ProgramCost::make(std::move(implementation), std::move(rows));
  EXPECT_TRUE(cost) << cost.error().message;
  return std::move(*cost);
}

double ns_of(const ProgramCost& cost, std::int64_t batch, std::size_t place = 0) {
  return cost.step(cost.implementation().stages[0], {batch, batch, batch * 512}).kernels[place].ns;
}

// The same kernel is launched by two calls; the one whose number of blocks is the recorded one says how it goes on.
TEST(ProgramCost, AKernelIsFoundByItsNameAndBlocks) {
  ProbedRows rows;
  for (const double n : {1.0, 8.0, 32.0}) {
    rows.kernels.push_back(kernel("void add(int)", "residual 0", n, n, 1000 + 10 * n));
    rows.kernels.push_back(kernel("void add(int)", "rotary 1", n, 4 * n, 1000 + 40 * n));
  }
  const ProgramCost cost = cost_of(decode_stage({recorded("add(int)", 8), recorded("add(int)", 32)}), rows);
  EXPECT_NEAR(ns_of(cost, 8, 0), 1080, 1e-6);
  EXPECT_NEAR(ns_of(cost, 8, 1), 1320, 1e-6);
  EXPECT_NEAR(ns_of(cost, 16, 0), 1160, 1e-6);  // between measured sizes
  EXPECT_NEAR(ns_of(cost, 32, 1), 2280, 1e-6);
  const ProgramStep step = cost.step(cost.implementation().stages[0], {16, 16, 16 * 512});
  EXPECT_EQ(step.kernels[0].basis, Basis::kInterpolated);
  EXPECT_TRUE(cost.unknown().empty());
}

TEST(ProgramCost, WithoutACallOfItsSizeTimesGoByBlocksThenByTemplate) {
  ProbedRows rows;
  for (const double n : {8.0, 16.0, 32.0}) rows.kernels.push_back(kernel("k<4>(int)", "some 0", n, 100 * n, 100 * n));
  const ProgramCost cost =
      cost_of(decode_stage({recorded("k<4>(int)", 1600), recorded("k<8>(int)", 1600), recorded("other", 1600)}), rows);
  const ProgramStep step = cost.step(cost.implementation().stages[0], {8, 8, 4096});
  EXPECT_NEAR(step.kernels[0].ns, 1600, 1e-6);
  EXPECT_EQ(step.kernels[0].basis, Basis::kInterpolated);
  EXPECT_NEAR(step.kernels[1].ns, 1600, 1e-6);
  EXPECT_EQ(step.kernels[1].basis, Basis::kExtrapolated);
  EXPECT_EQ(step.kernels[2].basis, Basis::kAssumed);
  EXPECT_THAT(cost.unknown(), ElementsAre("other"));
}

TEST(ProgramCost, ProductsGoByTheirShapeAndFollowersAreInThem) {
  ProbedRows rows;
  for (const double m : {1.0, 8.0, 64.0})
    rows.products.push_back({.m = m,
                             .n = 2048,
                             .k = 1024,
                             .dtype = "bfloat16",
                             .stage = "decode",
                             .graph = true,
                             .kernels = {"gemm", "splitk"},
                             .ns = 3000 + 100 * m});
  StepKernel product = recorded("gemm", 16), follower = recorded("splitk", 4);
  product.product = WeightProduct{8, 2048, 1024, "bfloat16"};
  follower.follows = true;
  const ProgramCost cost = cost_of(decode_stage({product, follower}), rows);
  EXPECT_NEAR(ns_of(cost, 8), 3800, 1e-6);
  EXPECT_NEAR(ns_of(cost, 64), 9400, 1e-6);
  EXPECT_EQ(ns_of(cost, 64, 1), 0);
}

// Two kernels of 1,000 ns. In a graph: gaps of 300. Launched every 5,000 ns with a latency of 2,000: the device waits.
TEST(ProgramCost, GapsInGraphsAndWaitsForLaunches) {
  ProbedRows rows;
  rows.kernels.push_back(kernel("add", "residual 0", 8, 8, 1000));
  rows.graph_gap_ns = 300, rows.queued_gap_ns = 1100;
  StageSteps stage = decode_stage({recorded("add", 8), recorded("add", 8)});
  const ProgramCost graph = cost_of(stage, rows);
  EXPECT_NEAR(graph.step(graph.implementation().stages[0], {8, 8, 8}).total_ns(), 2300, 1e-6);
  stage.graph = false;
  stage.host.launch_ns = {.value = 5000, .low = 4000, .high = 6000, .mean = 5500, .samples = 20};
  stage.host.latency_ns = {.value = 2000, .low = 2000, .high = 2000, .mean = 2000, .samples = 20};
  const ProgramCost eager = cost_of(stage, rows);
  EXPECT_NEAR(eager.step(eager.implementation().stages[0], {8, 8, 8}).total_ns(), 2000 + 5000 + 1000, 1e-6);
  stage.host.launch_ns.value = 500;  // launched ahead of the device
  const ProgramCost ahead = cost_of(stage, rows);
  EXPECT_NEAR(ahead.step(ahead.implementation().stages[0], {8, 8, 8}).total_ns(), 2000 + 1000 + 1100 + 1000, 1e-6);
}

// Of a graph: the latency of its launch first, then the time around it, never more than there is.
TEST(ProgramCost, WhatRecordingAddsIsLeftOut) {
  const auto total_of = [](double recording_ns) {
    ProbedRows rows;
    rows.kernels.push_back(kernel("add", "residual 0", 8, 8, 1000));
    rows.recording_ns = recording_ns;
    StageSteps stage = decode_stage({recorded("add", 8)});
    stage.host.latency_ns = {.value = 700, .low = 700, .high = 700, .mean = 700, .samples = 20};
    stage.host.around_ns = {.value = 300, .low = 300, .high = 300, .mean = 300, .samples = 20};
    const ProgramCost cost = cost_of(std::move(stage), std::move(rows));
    return cost.step(cost.implementation().stages[0], {8, 8, 8}).total_ns();
  };
  EXPECT_NEAR(total_of(0), 2000, 1e-9);
  EXPECT_NEAR(total_of(500), 1500, 1e-9);
  EXPECT_NEAR(total_of(800), 1200, 1e-9);
  EXPECT_NEAR(total_of(5000), 1000, 1e-9);
}

TEST(ProgramCost, NothingMeasuredIsAnError) {
  Implementation implementation;
  implementation.stages.push_back(decode_stage({recorded("add", 8)}));
  const auto cost = ProgramCost::make(std::move(implementation), {});
  ASSERT_FALSE(cost);
  EXPECT_THAT(cost.error().hint, testing::HasSubstr("bench --for RUN"));
}

// The error of a step: measured kernels 4 % and 3 %, the host's launches between 4,000 and 6,000 ns.
TEST(ProgramCost, IntervalsHoldKernelsAndHost) {
  ProbedRows rows;
  rows.kernels.push_back(kernel("add", "residual 0", 8, 8, 1000));
  StageSteps stage = decode_stage({recorded("add", 8), recorded("add", 8)});
  StepsInput input;
  input.batch = 8, input.context = 512;
  const StepError graph = program_error(cost_of(stage, rows), input);
  EXPECT_NEAR(graph.most, 1.07, 1e-9);
  EXPECT_NEAR(graph.least, 0.93, 1e-9);
  stage.graph = false;
  stage.host.launch_ns = {.value = 5000, .low = 4000, .high = 6000, .mean = 5500, .samples = 20};
  const StepError eager = program_error(cost_of(stage, rows), input);
  EXPECT_NEAR(eager.most, (7000 + 140) / 6000.0, 1e-9);
  EXPECT_NEAR(eager.least, (5000 - 140) / 6000.0, 1e-9);
}

}  // namespace
}  // namespace llmprof::predict
