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
