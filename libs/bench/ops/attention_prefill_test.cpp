#include <gtest/gtest.h>

#include <cmath>

#include "bench/ops/attention.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

std::vector<double> prefill(const Axes& axes, const std::vector<std::vector<double>>& inputs) {
  return run_reference("attention_prefill", Type::kFloat32, axes, inputs)[3];
}

TEST(AttentionPrefill, TwoTokensByHand) {
  // Scores of the second token: 0 and ln 3, so weights of 1/4 and 3/4. The first sees only itself.
  const auto out =
      prefill({{"seq", 2}, {"heads", 1}, {"kv_heads", 1}, {"head_dim", 1}}, {{3, std::log(3.0)}, {0, 1}, {10, 2}});
  EXPECT_DOUBLE_EQ(out[0], 10);
  EXPECT_NEAR(out[1], 4, 1e-12);
}

TEST(AttentionPrefill, EqualScoresAverageWhatIsSeen) {
  const auto out = prefill({{"seq", 3}, {"heads", 1}, {"kv_heads", 1}, {"head_dim", 2}},
                           {{0, 0, 0, 0, 0, 0}, {1, 2, 3, 4, 5, 6}, {3, 0, 6, 3, 9, 9}});
  const std::vector<double> expected{3, 0, 4.5, 1.5, 6, 4};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(out[i], expected[i], 1e-12);
}

TEST(AttentionPrefill, HeadsShareKeysInGroups) {
  const auto out =
      prefill({{"seq", 1}, {"heads", 4}, {"kv_heads", 2}, {"head_dim", 1}}, {{1, 2, 3, 4}, {1, 1}, {5, 7}});
  EXPECT_EQ(out, (std::vector<double>{5, 5, 7, 7}));
}

TEST(AttentionPrefill, SequencesDoNotSeeEachOther) {
  const auto out =
      prefill({{"batch", 2}, {"seq", 1}, {"heads", 1}, {"kv_heads", 1}, {"head_dim", 1}}, {{1, 1}, {1, 1}, {5, 7}});
  EXPECT_EQ(out, (std::vector<double>{5, 7}));
}

TEST(AttentionPrefill, WorkByHand) {
  // 3 tokens see 1 + 2 + 3 = 6 keys; 2 sequences · 4 heads · 6 pairs · (8 + 8) products.
  const model::KernelWork work = work_of("attention_prefill", Type::kBfloat16,
                                         {{"batch", 2}, {"seq", 3}, {"heads", 4}, {"kv_heads", 2}, {"head_dim", 8}});
  EXPECT_EQ(work.flops, 2 * 2 * 4 * 6 * 16);
  EXPECT_EQ(work.read_bytes, 2 * (3 * 4 * 8 + 3 * 2 * 16) * 2);
  EXPECT_EQ(work.write_bytes, 2 * 3 * 4 * 8 * 2);
}

TEST(AttentionPrefill, CpuEqualsTheReference) {
  EXPECT_LT(cpu_error("attention_prefill", Type::kFloat32,
                      {{"batch", 2}, {"seq", 37}, {"heads", 6}, {"kv_heads", 2}, {"head_dim", 20}}),
            1e-5);
}

TEST(AttentionPrefill, AxesMustFit) {
  const Operator& op = *find_operator("attention_prefill");
  const auto uneven = make_problem(op, Type::kBfloat16, Axes{{"heads", 6}, {"kv_heads", 4}});
  ASSERT_FALSE(uneven);
  EXPECT_EQ(uneven.error().message, "attention_prefill: 6 heads cannot share 4 kv_heads evenly");
  const std::int64_t huge = std::int64_t{1} << 50;
  EXPECT_FALSE(make_problem(op, Type::kBfloat16, Axes{{"batch", huge}, {"seq", huge}}));
  EXPECT_FALSE(make_problem(op, Type::kBfloat16, Axes{{"seq", 0}}));
}

TEST(AttentionPrefill, SmallIsOfTheSameKind) {
  const Problem problem = problem_of("attention_prefill", Type::kBfloat16,
                                     {{"batch", 8}, {"seq", 4097}, {"heads", 64}, {"kv_heads", 8}, {"head_dim", 128}});
  const Problem small = find_operator("attention_prefill")->small(problem);
  EXPECT_EQ(small.sizes(), "batch=2 seq=257 heads=16 kv_heads=2 head_dim=128");  // 8 heads share; 1 beyond 128·n
}

TEST(Splits, FillTheMachineAndNoMore) {
  const SplitCosts h200{.multiprocessors = 132, .blocks_per_multiprocessor = 3};
  EXPECT_EQ(choose_splits(8, 1, h200), 1);    // one tile cannot be cut
  EXPECT_EQ(choose_splits(396, 4, h200), 1);  // full already
  // As measured fastest on an H200 with 8 heads of keys: 1 sequence of 1024, 4096 and 32768 tokens, then 16, then 64.
  EXPECT_EQ(choose_splits(8, 16, h200), 8);
  EXPECT_EQ(choose_splits(8, 64, h200), 16);
  EXPECT_EQ(choose_splits(8, 512, h200), 32);
  EXPECT_EQ(choose_splits(128, 16, h200), 2);
  EXPECT_EQ(choose_splits(128, 64, h200), 2);
  EXPECT_EQ(choose_splits(512, 64, h200), 3);
}

}  // namespace
}  // namespace llmprof::bench
