#include <gtest/gtest.h>

#include "bench/operator.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

// Two sequences with room for 4 tokens of 1 value; the last token of each is new.
const Axes kOnePiece{{"batch", 2}, {"seq", 1}, {"kv_heads", 1}, {"head_dim", 1}, {"context", 4}, {"page", 0}};
const std::vector<double> kOldKeys{1, 2, 3, 4, 5, 6, 7, 8}, kOldValues{-1, -2, -3, -4, -5, -6, -7, -8};

TEST(KvWrite, WritesTheNewTokensAndNothingElse) {
  const auto tensors =
      run_reference("kv_write", Type::kFloat32, kOnePiece, {{10, 20}, {-10, -20}, kOldKeys, kOldValues});
  EXPECT_EQ(tensors[2], (std::vector<double>{1, 2, 3, 10, 5, 6, 7, 20}));
  EXPECT_EQ(tensors[3], (std::vector<double>{-1, -2, -3, -10, -5, -6, -7, -20}));
}

TEST(KvWrite, FindsThePageByTheTable) {
  // Pages of 2 tokens. Tokens 2 and 3 of the first sequence are new and lie in its second page, page 0 of the cache;
  // those of the second sequence in page 3.
  Axes axes = kOnePiece;
  axes[1].second = 2;
  axes[5].second = 2;
  const auto tensors = run_reference("kv_write", Type::kFloat32, axes,
                                     {{10, 11, 20, 21}, {-10, -11, -20, -21}, kOldKeys, kOldValues, {2, 0, 1, 3}});
  EXPECT_EQ(tensors[2], (std::vector<double>{10, 11, 3, 4, 5, 6, 20, 21}));
  EXPECT_EQ(tensors[3], (std::vector<double>{-10, -11, -3, -4, -5, -6, -20, -21}));
}

TEST(KvWrite, WorkByHand) {
  // 2 * 5 tokens, keys and values of 2 heads of 8 values, 2 bytes each, read and written. The last 5 of 32 tokens lie
  // in pages 6 and 7 of 4 tokens: two entries of 4 bytes per sequence.
  const model::KernelWork work =
      work_of("kv_write", Type::kBfloat16,
              {{"batch", 2}, {"seq", 5}, {"kv_heads", 2}, {"head_dim", 8}, {"context", 32}, {"page", 4}});
  EXPECT_EQ(work.flops, 0);
  EXPECT_EQ(work.read_bytes, 640 + 16);
  EXPECT_EQ(work.write_bytes, 640);
}

TEST(KvWrite, CpuEqualsTheReference) {
  const Axes axes{{"batch", 3}, {"seq", 5}, {"kv_heads", 2}, {"head_dim", 7}, {"context", 24}};
  for (const std::int64_t page : {0, 1, 8, 24}) {
    Axes paged = axes;
    paged.emplace_back("page", page);
    EXPECT_EQ(cpu_error("kv_write", Type::kFloat32, paged), 0) << page;
  }
}

TEST(KvWrite, TheSmallProblemFitsItsPages) {
  const Operator& op = *find_operator("kv_write");
  for (const std::int64_t page : {0, 1, 3, 16, 512, 4096}) {
    const std::int64_t context = page == 3 ? 6144 : 4096;
    const Problem problem =
        problem_of("kv_write", Type::kBfloat16, {{"seq", 2048}, {"context", context}, {"page", page}});
    EXPECT_TRUE(op.check(op.small(problem))) << op.small(problem).sizes();
  }
}

TEST(KvWrite, PagesThatDoNotFitAreErrors) {
  const Operator& op = *find_operator("kv_write");
  const auto pages = make_problem(op, Type::kBfloat16, Axes{{"context", 100}, {"seq", 1}, {"page", 16}});
  ASSERT_FALSE(pages);
  EXPECT_EQ(pages.error().message, "kv_write: a context of 100 tokens is not a whole number of pages of 16");
  const auto many = make_problem(op, Type::kBfloat16, Axes{{"context", 64}, {"seq", 65}});
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().message, "kv_write: seq = 65 does not fit into context = 64");
}

}  // namespace
}  // namespace llmprof::bench
