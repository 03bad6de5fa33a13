#include <gtest/gtest.h>

#include <cmath>

#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

std::vector<double> decode(const Axes& axes, const std::vector<std::vector<double>>& inputs) {
  return run_reference("attention_decode", Type::kFloat32, axes, inputs)[3];
}

TEST(AttentionDecode, TwoKeysByHand) {
  // head_dim 4 halves the scores: 0 and 2 ln 3 / 2, so weights of 1/4 and 3/4.
  const auto out = decode({{"context", 2}, {"heads", 1}, {"kv_heads", 1}, {"head_dim", 4}},
                          {{2, 0, 0, 0}, {0, 1, 1, 1, std::log(3.0), 5, 6, 7}, {4, 0, 8, 0, 0, 4, 8, 12}});
  const std::vector<double> expected{1, 3, 8, 9};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(out[i], expected[i], 1e-12);
}

TEST(AttentionDecode, EqualScoresAverage) {
  const auto out =
      decode({{"context", 3}, {"heads", 2}, {"kv_heads", 1}, {"head_dim", 1}}, {{0, 0}, {1, 2, 3}, {3, 6, 9}});
  EXPECT_NEAR(out[0], 6, 1e-12);
  EXPECT_NEAR(out[1], 6, 1e-12);
}

TEST(AttentionDecode, PagesInAnyOrderAreTheSameCache) {
  // Four pages of two tokens, kv_heads 1, head_dim 1, two sequences: tokens 0 … 3 and 4 … 7 of one piece.
  const std::vector<double> q{0.5, -1}, k{1, 2, 3, 4, -1, -2, 0, 1}, v{1, 10, 100, 1000, 2, 20, 200, 2000};
  const Axes axes{{"batch", 2}, {"context", 4}, {"heads", 1}, {"kv_heads", 1}, {"head_dim", 1}};
  Axes paged = axes;
  paged.push_back({"page", 2});
  const auto whole = decode(axes, {q, k, v});
  const std::vector<double> table{2, 0, 3, 1};  // page 0 of sequence 0 lies third
  std::vector<double> moved_k(8), moved_v(8);
  for (std::size_t token = 0; token < 8; ++token) {
    const auto at = static_cast<std::size_t>(table[token / 2]) * 2 + token % 2;
    moved_k[at] = k[token];
    moved_v[at] = v[token];
  }
  EXPECT_EQ(decode(paged, {q, moved_k, moved_v, table}), whole);
  EXPECT_NE(decode(paged, {q, k, v, table}), whole);
}

TEST(AttentionDecode, WorkByHand) {
  // 2 sequences · 4 heads · 5 keys · (8 + 8) products; every key and value read once, whatever shares it.
  const Axes axes{{"batch", 2}, {"context", 5}, {"heads", 4}, {"kv_heads", 2}, {"head_dim", 8}};
  const model::KernelWork work = work_of("attention_decode", Type::kBfloat16, axes);
  EXPECT_EQ(work.flops, 2 * 2 * 4 * 5 * 16);
  EXPECT_EQ(work.read_bytes, 2 * (4 * 8 + 5 * 2 * 16) * 2);
  EXPECT_EQ(work.write_bytes, 2 * 4 * 8 * 2);
}

TEST(AttentionDecode, CpuEqualsTheReference) {
  const Axes axes{{"batch", 3}, {"context", 48}, {"heads", 6}, {"kv_heads", 2}, {"head_dim", 24}};
  EXPECT_LT(cpu_error("attention_decode", Type::kFloat32, axes), 1e-5);
  Axes paged = axes;
  paged.push_back({"page", 16});
  EXPECT_LT(cpu_error("attention_decode", Type::kFloat32, paged), 1e-5);
}

TEST(AttentionDecode, AxesMustFit) {
  const Operator& op = *find_operator("attention_decode");
  const auto pages = make_problem(op, Type::kBfloat16, Axes{{"context", 24}, {"page", 16}});
  ASSERT_FALSE(pages);
  EXPECT_EQ(pages.error().message, "attention_decode: a context of 24 tokens is not a whole number of pages of 16");
  EXPECT_FALSE(make_problem(op, Type::kBfloat16, Axes{{"context", 0}}));
  EXPECT_FALSE(make_problem(op, Type::kBfloat16, Axes{{"heads", 8}, {"kv_heads", 3}}));
  EXPECT_FALSE(make_problem(op, Type::kBfloat16, Axes{{"context", std::int64_t{1} << 60}}));
}

TEST(AttentionDecode, SmallKeepsWholePages) {
  const Axes axes{{"batch", 64}, {"context", 32768}, {"page", 64}};
  const Problem small = find_operator("attention_decode")->small(problem_of("attention_decode", Type::kBfloat16, axes));
  EXPECT_EQ(small.sizes(), "batch=2 context=576 heads=8 kv_heads=2 head_dim=128 page=64");
}

}  // namespace
}  // namespace llmprof::bench
