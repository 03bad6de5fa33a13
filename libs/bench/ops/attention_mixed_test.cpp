#include <gtest/gtest.h>

#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

using Tensors = std::vector<std::vector<double>>;

TEST(AttentionMixed, AChunkSeesWhatIsBeforeIt) {
  // Equal scores: a query takes the mean of the values it sees. Two tokens before a chunk of two.
  const Axes axes{{"chunk", 2}, {"prior", 2},    {"batch", 1},   {"context", 2},
                  {"heads", 1}, {"kv_heads", 1}, {"head_dim", 1}};
  const Tensors out = run_reference("attention_mixed", Type::kFloat32, axes,
                                    {{0, 0}, {1, 2, 3, 4}, {3, 6, 9, 22}, {0}, {1, 1}, {10, 30}});
  ASSERT_EQ(out.size(), 8u);
  EXPECT_NEAR(out[3][0], 6, 1e-12);   // of 3, 6 and 9
  EXPECT_NEAR(out[3][1], 10, 1e-12);  // and of 22
  EXPECT_NEAR(out[7][0], 20, 1e-12);  // the decode sees its own cache only
}

TEST(AttentionMixed, WithoutPriorAndDecodesItIsAPrefill) {
  const Axes heads{{"heads", 2}, {"kv_heads", 1}, {"head_dim", 2}};
  Axes mixed{{"chunk", 3}, {"prior", 0}, {"batch", 0}}, prefill{{"seq", 3}};
  mixed.insert(mixed.end(), heads.begin(), heads.end());
  prefill.insert(prefill.end(), heads.begin(), heads.end());
  const Tensors inputs{{1, 2, 3, 4, 5, 6, -1, -2, 1, 0, 2, 1}, {1, 0, 2, 1, -1, 3}, {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(run_reference("attention_mixed", Type::kFloat32, mixed, inputs)[3],
            run_reference("attention_prefill", Type::kFloat32, prefill, inputs)[3]);
  const model::KernelWork a = work_of("attention_mixed", Type::kBfloat16, mixed);
  const model::KernelWork b = work_of("attention_prefill", Type::kBfloat16, prefill);
  EXPECT_EQ(a.flops, b.flops);
  EXPECT_EQ(a.bytes(), b.bytes());
}

TEST(AttentionMixed, ItsWorkIsThatOfBoth) {
  const Axes axes{{"chunk", 4}, {"prior", 8},    {"batch", 2},   {"context", 5},
                  {"heads", 4}, {"kv_heads", 2}, {"head_dim", 8}};
  const model::KernelWork work = work_of("attention_mixed", Type::kBfloat16, axes);
  // Queries see 9, 10, 11 and 12 keys; decodes 5 each. Products of 8 with keys and 8 with values.
  EXPECT_EQ(work.flops, 2.0 * 4 * 16 * (9 + 10 + 11 + 12) + 2.0 * 2 * 4 * 5 * 16);
  EXPECT_EQ(work.write_bytes, (4 * 4 * 8 + 2 * 4 * 8) * 2);
}

TEST(AttentionMixed, CpuEqualsTheReference) {
  Axes axes{{"chunk", 21}, {"prior", 13},   {"batch", 3},    {"context", 48},
            {"heads", 6},  {"kv_heads", 2}, {"head_dim", 24}};
  EXPECT_LT(cpu_error("attention_mixed", Type::kFloat32, axes), 1e-5);
  axes.push_back({"page", 16});
  EXPECT_LT(cpu_error("attention_mixed", Type::kFloat32, axes), 1e-5);
  axes[2].second = 0;
  EXPECT_LT(cpu_error("attention_mixed", Type::kFloat32, axes), 1e-5);
}

TEST(AttentionMixed, SmallKeepsItsKind) {
  const Axes axes{{"chunk", 2048}, {"prior", 4100}, {"batch", 64}, {"context", 8192}, {"page", 16}};
  const Problem small = find_operator("attention_mixed")->small(problem_of("attention_mixed", Type::kBfloat16, axes));
  EXPECT_EQ(small.sizes(), "chunk=256 prior=260 batch=2 context=528 heads=8 kv_heads=2 head_dim=128 page=16");
}

TEST(AttentionMixed, AxesMustFit) {
  const Operator& op = *find_operator("attention_mixed");
  EXPECT_FALSE(make_problem(op, Type::kBfloat16, Axes{{"heads", 8}, {"kv_heads", 3}}));
  EXPECT_FALSE(make_problem(op, Type::kBfloat16, Axes{{"context", 24}, {"page", 16}}));
  EXPECT_FALSE(make_problem(op, Type::kBfloat16, Axes{{"prior", std::int64_t{1} << 60}}));
  EXPECT_FALSE(make_problem(op, Type::kBfloat16, Axes{{"chunk", 0}}));
}

}  // namespace
}  // namespace llmprof::bench
