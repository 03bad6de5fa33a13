#include "analyze/passes/repeated_products.h"

#include <gtest/gtest.h>

namespace llmprof::analyze {
namespace {

// Calls as PyTorch makes them through cuBLAS: columns first, m = out, n = rows.
class Recorded {
 public:
  void call(std::int64_t out, std::int64_t in, std::int64_t rows, std::int64_t batch = 1) {
    calls.shapes.push_back({out, rows, in, batch, CallShape::Order::kColumnMajor});
    calls.shape.push_back(static_cast<std::uint32_t>(calls.shapes.size() - 1));
    calls.process_id.push_back(1);
    calls.thread_id.push_back(7);
    calls.begin_ns.push_back(now_ns);
    calls.end_ns.push_back(now_ns + 5);
    calls.segment.push_back(0);
    now_ns += 10;
  }
  // Two layers of two products, attention between them, then the logits.
  void pass(std::int64_t rows, std::int64_t logits_rows) {
    for (int layer = 0; layer < 2; ++layer) {
      call(64, 32, rows);
      call(rows, rows, 16, 4);  // attention: batched, any size
      call(32, 64, rows);
    }
    call(1000, 32, logits_rows);
  }
  Calls calls;
  std::int64_t now_ns = 100;
};

TEST(RepeatedPasses, TheLogitsSeparatePromptAndTokens) {
  Recorded run;
  run.pass(12, 1);
  for (int i = 0; i < 3; ++i) run.pass(1, 1);
  const auto separator = separating_matrix(run.calls, {});
  ASSERT_TRUE(separator);
  EXPECT_EQ(*separator, MatrixSize(32, 1000));
  const Matches matches = repeated_passes(run.calls, *separator);
  ASSERT_EQ(matches.passes.size(), 4u);
  EXPECT_EQ(matches.passes[0].rows, 12);
  EXPECT_EQ(matches.passes[0].logits_rows, 1);
  EXPECT_EQ(matches.passes[1].rows, 1);
  // A pass has 7 calls, one each 10 ns: it begins at its first and ends with its last.
  EXPECT_EQ(matches.passes[1].begin_ns, 100 + 70);
  EXPECT_EQ(matches.passes[1].end_ns, 100 + 130 + 5);
  EXPECT_EQ(matches.calls[6].pass, 0);
  EXPECT_EQ(matches.calls[7].pass, 1);
}

TEST(RepeatedPasses, LogitsInPartsAreOnePass) {
  Recorded run;
  for (int i = 0; i < 3; ++i) {
    run.pass(2, 2);
    run.call(1000, 32, 2);
  }
  EXPECT_EQ(repeated_passes(run.calls, {32, 1000}).passes.size(), 3u);
}

TEST(RepeatedPasses, APassThatWasHardlySeenIsNone) {
  Recorded run;
  run.call(1000, 32, 1);  // recording began at the end of a pass
  for (int i = 0; i < 3; ++i) run.pass(1, 1);
  run.call(64, 32, 1);  // and ended in the middle of one
  EXPECT_EQ(repeated_passes(run.calls, {32, 1000}).passes.size(), 3u);
}

TEST(RepeatedPasses, WhatIsNotRepeatedSeparatesNothing) {
  Recorded run;
  run.pass(4, 4);
  EXPECT_FALSE(separating_matrix(run.calls, {}));
  Recorded graph;  // launched many times, captured once
  graph.pass(1, 1);
  EXPECT_EQ(separating_matrix(run.calls, graph.calls), MatrixSize(32, 1000));
}

TEST(RepeatedPasses, ProductsOfOneKindOnlyAreNoPasses) {
  Recorded run;
  for (int i = 0; i < 10; ++i) run.call(1000, 32, 1);
  EXPECT_TRUE(repeated_passes(run.calls, {32, 1000}).passes.empty());
}

// A diffusion transformer: the widest matrix is in every layer, what comes once a pass is small.
TEST(RepeatedPasses, WhatIsInEveryLayerSeparatesNothing) {
  Recorded run;
  for (int i = 0; i < 5; ++i) {
    run.call(48, 16, 4);
    for (int layer = 0; layer < 8; ++layer) {
      run.call(600, 100, 4);
      run.call(300, 100, 64);
      run.call(100, 300, 64);
    }
    run.call(12, 100, 64);
    run.now_ns += 1000;  // the program does something else
  }
  const auto separator = separating_matrix(run.calls, {});
  EXPECT_EQ(separator, MatrixSize(100, 12));
  const Matches matches = repeated_passes(run.calls, *separator);
  ASSERT_EQ(matches.passes.size(), 5u);
  EXPECT_EQ(matches.passes[0].begin_ns, 100);
  EXPECT_EQ(matches.passes[1].begin_ns, 100 + 26 * 10 + 1000);
}

TEST(RepeatedPasses, AModelOfOneLayerIsSeparatedByItsLogits) {
  Recorded run;
  for (int i = 0; i < 5; ++i) {
    run.call(64, 32, 2);
    run.call(32, 64, 2);
    run.call(1000, 32, 2);
  }
  EXPECT_EQ(separating_matrix(run.calls, {}), MatrixSize(32, 1000));
}

TEST(RepeatedPasses, ASmallerModelDrafts) {
  Recorded run;
  for (int i = 0; i < 4; ++i) {
    run.call(16, 8, 1);
    run.call(8, 16, 1);
    run.call(1000, 8, 1);
    run.pass(2, 2);
  }
  const Matches matches = repeated_passes(run.calls, separating_matrix(run.calls, {}).value());
  ASSERT_EQ(matches.passes.size(), 8u);
  EXPECT_EQ(matches.passes[0].of, MatchedPass::Of::kDraft);
  EXPECT_EQ(matches.passes[0].rows, 1);
  EXPECT_EQ(matches.passes[1].of, MatchedPass::Of::kModel);
  EXPECT_EQ(matches.passes[1].rows, 2);
  EXPECT_EQ(matches.passes[1].begin_ns, 100 + 30);
}

// Encoder with 40 rows; the decoder projects them once more in each layer of its first pass.
TEST(RepeatedPasses, AnEncoderBeforeADecoder) {
  Recorded run;
  for (int i = 0; i < 3; ++i) run.call(64, 32, 40), run.call(32, 64, 40);
  for (int i = 0; i < 2; ++i) run.call(64, 32, 3), run.call(32, 32, 40), run.call(32, 64, 3);
  run.call(1000, 32, 3);
  for (int i = 0; i < 3; ++i) run.pass(3, 3);
  const Matches matches = repeated_passes(run.calls, {32, 1000});
  ASSERT_EQ(matches.passes.size(), 5u);
  EXPECT_EQ(matches.passes[0].of, MatchedPass::Of::kEncoder);
  EXPECT_EQ(matches.passes[0].rows, 40);
  EXPECT_EQ(matches.passes[0].end_ns, 100 + 50 + 5);
  EXPECT_EQ(matches.passes[1].of, MatchedPass::Of::kModel);
  EXPECT_EQ(matches.passes[1].rows, 3);
  EXPECT_EQ(matches.passes[1].begin_ns, 100 + 60);
}

// An image before a prompt: its rows do not come again, and the prompt waits for it.
TEST(RepeatedPasses, AnImageBelongsToItsPrompt) {
  Recorded run;
  for (int i = 0; i < 3; ++i) run.call(64, 48, 40), run.call(48, 64, 40);
  run.pass(12, 1);
  for (int i = 0; i < 3; ++i) run.pass(1, 1);
  EXPECT_EQ(repeated_passes(run.calls, {32, 1000}).passes.size(), 4u);
}

TEST(RepeatedPasses, RowMajorCallsCountTheOtherWayRound) {
  Recorded run;
  for (int i = 0; i < 3; ++i) run.pass(5, 5);
  for (CallShape& shape : run.calls.shapes) {
    std::swap(shape.m, shape.n);
    shape.order = CallShape::Order::kRowMajor;
  }
  const Matches matches = repeated_passes(run.calls, separating_matrix(run.calls, {}).value());
  ASSERT_EQ(matches.passes.size(), 3u);
  EXPECT_EQ(matches.passes[0].rows, 5);
}

}  // namespace
}  // namespace llmprof::analyze
