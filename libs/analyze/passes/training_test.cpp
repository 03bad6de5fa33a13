#include "analyze/passes/repeated_products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmprof::analyze {
namespace {

using testing::ElementsAre;
using Kind = TrainingPass::Kind;

constexpr std::int64_t kRows = 512, kMain = 1, kAutograd = 2;
constexpr std::int64_t kSizes[][2] = {{64, 192}, {64, 64},  {64, 256}, {256, 64}, {64, 192},
                                      {64, 64},  {64, 256}, {256, 64}, {64, 1000}};

// Calls as cuBLAS gets them from a framework: columns first, so m is what comes out and n are the rows.
struct Program {
  void call(std::int64_t thread, CallShape shape) {
    shape.order = CallShape::Order::kColumnMajor;
    for (std::size_t i = 0; i <= calls.shapes.size(); ++i) {
      if (i == calls.shapes.size()) calls.shapes.push_back(shape);
      if (calls.shapes[i] != shape) continue;
      calls.shape.push_back(static_cast<std::uint32_t>(i));
      break;
    }
    calls.process_id.push_back(7);
    calls.thread_id.push_back(thread);
    calls.begin_ns.push_back(now);
    calls.end_ns.push_back(now + 5);
    now += 10;
  }
  void forward(std::int64_t rows = kRows) {
    for (const auto& [in, out] : kSizes)
      call(kMain, {.m = out, .n = rows, .k = in, .transposed = CallShape::Transposed::kA});
  }
  void backward(bool recompute = false) {
    for (std::size_t i = std::size(kSizes); i-- > 0;) {
      const auto [in, out] = kSizes[i];
      if (recompute) call(kAutograd, {.m = out, .n = kRows, .k = in, .transposed = CallShape::Transposed::kA});
      call(kAutograd, {.m = in, .n = kRows, .k = out, .transposed = CallShape::Transposed::kNeither});
      call(kAutograd, {.m = in, .n = out, .k = kRows, .transposed = CallShape::Transposed::kB});
    }
  }
  void update() {
    updates.process_id.push_back(7);
    updates.begin_ns.push_back(now);
    updates.end_ns.push_back(now + 4);
    now += 10;
  }
  std::vector<Kind> kinds() const {
    std::vector<Kind> out;
    for (const TrainingPass& pass : training_passes(calls, updates)) out.push_back(pass.kind);
    return out;
  }

  Calls calls;
  Updates updates;
  std::int64_t now = 100;
};

TEST(Training, ForwardBackwardAndOptimizerOfALoop) {
  Program program;
  for (int step = 0; step < 3; ++step) {
    program.forward();
    program.backward();
    program.update();
  }
  const std::vector<TrainingPass> passes = training_passes(program.calls, program.updates);
  ASSERT_EQ(passes.size(), 9u);
  EXPECT_EQ(passes[3].kind, Kind::kForward);
  EXPECT_EQ(passes[4].kind, Kind::kBackward);
  EXPECT_EQ(passes[5].kind, Kind::kOptimizer);
  EXPECT_EQ(passes[3].rows, kRows);
  EXPECT_EQ(passes[4].thread_id, kMain);            // one training step, whichever thread goes back
  EXPECT_EQ(passes[3].end_ns, passes[4].begin_ns);  // the loss
  EXPECT_EQ(passes[3].begin_ns, passes[2].begin_ns + 10);
  EXPECT_EQ(passes[4].begin_ns - passes[3].begin_ns, 10 * std::ssize(kSizes));
}

TEST(Training, BatchesAddedUpAndRecomputation) {
  Program program;
  for (int step = 0; step < 3; ++step) {
    for (int batch = 0; batch < 2; ++batch) {
      program.forward();
      program.backward(true);
    }
    program.update();
  }
  const std::vector<Kind> kinds = program.kinds();
  ASSERT_EQ(kinds.size(), 15u);
  EXPECT_THAT(std::vector(kinds.begin(), kinds.begin() + 5),
              ElementsAre(Kind::kForward, Kind::kBackward, Kind::kForward, Kind::kBackward, Kind::kOptimizer));
}

// Not all weights are trained: gradients of inputs come before those of weights, and behind them.
TEST(Training, FrozenWeights) {
  Program program;
  for (int step = 0; step < 3; ++step) {
    program.forward();
    for (std::size_t i = std::size(kSizes); i-- > 0;) {
      const auto [in, out] = kSizes[i];
      program.call(kAutograd, {.m = in, .n = kRows, .k = out, .transposed = CallShape::Transposed::kNeither});
      if (i % 2 == 1) program.call(kAutograd, {.m = in, .n = out, .k = kRows, .transposed = CallShape::Transposed::kB});
    }
    program.update();
  }
  const std::vector<TrainingPass> passes = training_passes(program.calls, program.updates);
  ASSERT_EQ(passes.size(), 9u);
  EXPECT_EQ(passes[4].kind, Kind::kBackward);
  EXPECT_EQ(passes[4].begin_ns - passes[3].begin_ns, 10 * std::ssize(kSizes));  // not behind some of its products
}

TEST(Training, WhatNothingWasLearnedFromIsNoForwardPassOfTraining) {
  Program program;
  for (int step = 0; step < 4; ++step) {
    if (step == 2) program.forward(), program.forward();
    program.forward();
    program.backward();
  }
  const std::vector<Kind> kinds = program.kinds();
  EXPECT_EQ(std::ranges::count(kinds, Kind::kForward), 4);
  EXPECT_EQ(std::ranges::count(kinds, Kind::kBackward), 4);
  EXPECT_EQ(std::ranges::count(kinds, Kind::kForwardOnly), 2);
}

TEST(Training, InferenceIsNone) {
  Program program;
  program.forward();
  for (int token = 0; token < 20; ++token) program.forward(2);
  EXPECT_TRUE(program.kinds().empty());
}

}  // namespace
}  // namespace llmprof::analyze
