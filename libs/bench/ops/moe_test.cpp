#include <gtest/gtest.h>

#include <cmath>

#include "bench/operator.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

double silu(double x) { return x / (1 + std::exp(-x)); }

TEST(Moe, OneExpertByHand) {
  // One token [1 2], one expert: gate [1 0] gives 1, up [0 3] gives 6; down [1; 2] of silu(1) * 6.
  const auto tensors = run_reference("moe", Type::kFloat32,
                                     {{"seq", 1}, {"hidden", 2}, {"intermediate", 1}, {"experts", 1}, {"top_k", 1}},
                                     {{1, 2}, {-5}, {1, 0, 0, 3}, {1, 2}});
  EXPECT_NEAR(tensors[4][0], silu(1) * 6, 1e-12);
  EXPECT_NEAR(tensors[4][1], silu(1) * 12, 1e-12);
}

TEST(Moe, TokensGoToTheirBestExperts) {
  // Hidden and intermediate of 1; expert e gates and lifts by 1 and gives e + 1 times silu(x) * x. Logits ln 1, ln 3,
  // ln 0.5, ln 9: of four experts the fourth and the second are chosen, with shares 9/12 and 3/12.
  const auto tensors = run_reference(
      "moe", Type::kFloat64, {{"seq", 1}, {"hidden", 1}, {"intermediate", 1}, {"experts", 4}, {"top_k", 2}},
      {{2}, {std::log(1), std::log(3), std::log(0.5), std::log(9)}, {1, 1, 1, 1, 1, 1, 1, 1}, {1, 2, 3, 4}});
  EXPECT_NEAR(tensors[4][0], silu(2) * 2 * (0.75 * 4 + 0.25 * 2), 1e-12);
}

TEST(Moe, OfEqualLogitsTheLowerExpertIsTaken) {
  const auto tensors = run_reference("moe", Type::kFloat64,
                                     {{"seq", 1}, {"hidden", 1}, {"intermediate", 1}, {"experts", 3}, {"top_k", 1}},
                                     {{2}, {0, 7, 7}, {1, 1, 1, 1, 1, 1}, {1, 10, 100}});
  EXPECT_NEAR(tensors[4][0], silu(2) * 2 * 10, 1e-12);
}

TEST(Moe, WorkByHand) {
  // 4 tokens to 2 of 8 experts each: 8 rows of 2 * 3 * 16 * 32 operations.
  const model::KernelWork work =
      work_of("moe", Type::kBfloat16, {{"seq", 4}, {"hidden", 16}, {"intermediate", 32}, {"experts", 8}, {"top_k", 2}});
  EXPECT_EQ(work.flops, 8 * 2 * 3 * 16 * 32);
}

TEST(Moe, CpuEqualsTheReference) {
  const Axes axes{{"batch", 2}, {"seq", 9}, {"hidden", 40}, {"intermediate", 24}, {"experts", 5}, {"top_k", 3}};
  EXPECT_LT(cpu_error("moe", Type::kFloat32, axes), 1e-5);
}

TEST(Moe, RefusesAxesThatDoNotFit) {
  EXPECT_FALSE(make_problem(*find_operator("moe"), Type::kBfloat16, Axes{{"experts", 4}, {"top_k", 5}}));
  EXPECT_FALSE(make_problem(*find_operator("moe"), Type::kBfloat16, Axes{{"experts", 2000}}));
  EXPECT_FALSE(make_problem(*find_operator("moe"), Type::kBfloat16,
                            Axes{{"hidden", std::int64_t{1} << 40}, {"intermediate", std::int64_t{1} << 40}}));
}

TEST(Moe, TheSmallProblemKeepsTheRowsOfAnExpert) {
  // 4096 tokens to 8 of 128: 256 rows each, cut to 80 each of 8 experts, 4 per token.
  const Axes axes{{"seq", 4096}, {"hidden", 2048}, {"intermediate", 768}, {"experts", 128}, {"top_k", 8}};
  const Problem small = find_operator("moe")->small(problem_of("moe", Type::kBfloat16, axes));
  EXPECT_EQ(small.sizes(), "batch=1 seq=160 hidden=128 intermediate=64 experts=8 top_k=4");
}

}  // namespace
}  // namespace llmprof::bench
