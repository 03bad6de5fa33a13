#include <gtest/gtest.h>

#include <cmath>

#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

std::vector<double> decode(const Axes& axes, const std::vector<std::vector<double>>& inputs) {
  return run_reference("mla_decode", Type::kFloat32, axes, inputs)[2];
}

TEST(MlaDecode, TwoRowsByHand) {
  // Rows of 3 latent values and 1 rotary: 4 halve the score. The rotary part decides: 0 and 2 ln 3 / 2.
  const auto out = decode({{"context", 2}, {"heads", 1}, {"rank", 3}, {"rope", 1}},
                          {{0, 0, 0, 2}, {4, 0, 8, 0, 0, 4, 8, std::log(3.0)}});
  ASSERT_EQ(out.size(), 3U);
  EXPECT_NEAR(out[0], 1, 1e-12);
  EXPECT_NEAR(out[1], 3, 1e-12);
  EXPECT_NEAR(out[2], 8, 1e-12);
}

TEST(MlaDecode, EqualScoresAverageTheLatent) {
  const auto out = decode({{"context", 2}, {"heads", 2}, {"rank", 1}, {"rope", 1}}, {{0, 0, 0, 0}, {3, 100, 5, -100}});
  EXPECT_NEAR(out[0], 4, 1e-12);
  EXPECT_NEAR(out[1], 4, 1e-12);
}

TEST(MlaDecode, PagesInAnyOrderAreTheSameCache) {
  const std::vector<double> q{0.5, -1}, rows{1, 2, 3, 4};  // two tokens of rank 1 and rope 1
  const Axes axes{{"context", 2}, {"heads", 1}, {"rank", 1}, {"rope", 1}};
  Axes paged = axes;
  paged.push_back({"page", 1});
  EXPECT_EQ(decode(paged, {q, {3, 4, 1, 2}, {1, 0}}), decode(axes, {q, rows}));
}

TEST(MlaDecode, WorkByHand) {
  // 2 heads · 3 rows · (6 + 4) products; each row read once for both.
  const model::KernelWork work =
      work_of("mla_decode", Type::kBfloat16, {{"context", 3}, {"heads", 2}, {"rank", 4}, {"rope", 2}});
  EXPECT_EQ(work.flops, 2 * 2 * 3 * 10);
  EXPECT_EQ(work.read_bytes, (2 * 6 + 3 * 6) * 2);
  EXPECT_EQ(work.write_bytes, 2 * 4 * 2);
}

TEST(MlaDecode, CpuEqualsTheReference) {
  const Axes axes{{"batch", 2}, {"context", 40}, {"heads", 5}, {"rank", 48}, {"rope", 8}};
  EXPECT_LT(cpu_error("mla_decode", Type::kFloat32, axes), 1e-5);
  Axes paged = axes;
  paged.push_back({"page", 8});
  EXPECT_LT(cpu_error("mla_decode", Type::kFloat32, paged), 1e-5);
}

TEST(MlaDecode, SmallFillsABlockOfHeads) {
  const Operator& op = *find_operator("mla_decode");
  const Problem deepseek = problem_of("mla_decode", Type::kBfloat16, {{"batch", 64}, {"context", 4100}});
  EXPECT_EQ(op.small(deepseek).sizes(), "batch=2 context=260 heads=64 rank=512 rope=64 page=0");
  EXPECT_EQ(op.small(deepseek.with("heads", 16)).at("heads"), 16);
  EXPECT_EQ(op.small(deepseek.with("heads", 80)).at("heads"), 80);  // 64 and 16 more
}

TEST(MlaDecode, AxesMustFit) {
  const Operator& op = *find_operator("mla_decode");
  EXPECT_FALSE(make_problem(op, Type::kBfloat16, Axes{{"context", 100}, {"page", 64}}));
  EXPECT_FALSE(make_problem(op, Type::kBfloat16, Axes{{"context", 0}}));
  EXPECT_FALSE(make_problem(op, Type::kBfloat16, Axes{{"context", std::int64_t{1} << 60}}));
  EXPECT_TRUE(make_problem(op, Type::kBfloat16, Axes{{"rope", 0}}));
}

}  // namespace
}  // namespace llmprof::bench
