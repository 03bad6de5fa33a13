#include <gtest/gtest.h>

#include <cmath>

#include "bench/operator.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

TEST(Rope, TurnsByHand) {
  // head_dim 4: pairs (0, 2) and (1, 3). At position 3 the first turns by 3 radians, the second by 3 / 10000^(1/2) =
  // 0.03.
  const auto tensors = run_reference("rope", Type::kFloat32, {{"heads", 1}, {"kv_heads", 1}, {"head_dim", 4}},
                                     {{1, 0, 0, 2}, {0, 1, 1, 0}, {3}});
  const std::vector<double> q{std::cos(3.0), -2 * std::sin(0.03), std::sin(3.0), 2 * std::cos(0.03)};
  const std::vector<double> k{-std::sin(3.0), std::cos(0.03), std::cos(3.0), std::sin(0.03)};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(tensors[0][i], q[i], 1e-12) << i;
    EXPECT_NEAR(tensors[1][i], k[i], 1e-12) << i;
  }
}

double squares(const std::vector<double>& values, std::size_t begin, std::size_t count) {
  double sum = 0;
  for (std::size_t i = begin; i < begin + count; ++i) sum += values[i] * values[i];
  return sum;
}

TEST(Rope, KeepsNormsAndLeavesPositionZeroAlone) {
  const Axes axes{{"seq", 2}, {"heads", 3}, {"kv_heads", 1}, {"head_dim", 8}};
  const auto q = random_values({.elements = 2 * 3 * 8}, 1), k = random_values({.elements = 2 * 8}, 2);
  const auto tensors = run_reference("rope", Type::kFloat32, axes, {q, k, {0, 100'000}});
  for (std::size_t i = 0; i < 3 * 8; ++i) EXPECT_EQ(tensors[0][i], q[i]) << i;
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(tensors[1][i], k[i]) << i;
  for (std::size_t head = 3; head < 6; ++head) {
    EXPECT_NEAR(squares(tensors[0], head * 8, 8), squares(q, head * 8, 8), 1e-9) << head;
    EXPECT_GT(std::fabs(tensors[0][head * 8] - q[head * 8]), 1e-6) << head;  // and did turn
  }
  EXPECT_NEAR(squares(tensors[1], 8, 8), squares(k, 8, 8), 1e-9);
}

TEST(Rope, WorkByHand) {
  // 10 tokens of (4 + 2) heads of 8 values, read and written, 2 bytes each; a position of 4 bytes per token.
  const model::KernelWork work =
      work_of("rope", Type::kBfloat16, {{"batch", 2}, {"seq", 5}, {"heads", 4}, {"kv_heads", 2}, {"head_dim", 8}});
  EXPECT_EQ(work.flops, 0);
  EXPECT_EQ(work.read_bytes, 1000);
  EXPECT_EQ(work.write_bytes, 960);
}

TEST(Rope, CpuEqualsTheReference) {
  EXPECT_LT(cpu_error("rope", Type::kFloat32, {{"batch", 2}, {"seq", 7}, {"heads", 5}, {"head_dim", 6}}), 1e-6);
}

TEST(Rope, PairsNeedAnEvenHead) {
  const auto odd = make_problem(*find_operator("rope"), Type::kBfloat16, Axes{{"head_dim", 127}});
  ASSERT_FALSE(odd);
  EXPECT_NE(odd.error().message.find("head_dim = 127 is odd"), std::string::npos) << odd.error().message;
  EXPECT_FALSE(make_problem(*find_operator("rope"), Type::kBfloat16, Axes{{"head_dim", 4096}}));
  EXPECT_FALSE(make_problem(*find_operator("rope"), Type::kBfloat16, Axes{{"heads", std::int64_t{1} << 40}}));
}

}  // namespace
}  // namespace llmprof::bench
