#include <gtest/gtest.h>

#include "bench/operator.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

TEST(Linear, ProjectsEveryTokenByHand) {
  // Two sequences of one token, 2 values to 3: token [1 2] and [3 -1] against rows [1 0], [0 1], [1 1].
  const auto tensors = run_reference("linear", Type::kFloat32, {{"batch", 2}, {"seq", 1}, {"in", 2}, {"out", 3}},
                                     {{1, 2, 3, -1}, {1, 0, 0, 1, 1, 1}});
  EXPECT_EQ(tensors[2], (std::vector<double>{1, 2, 3, 3, -1, 2}));
}

TEST(Linear, TheWeightsAreReadOnce) {
  // 6 tokens of 4 values to 5: 2 * 6 * 4 * 5 operations, 24 + 20 values of 2 bytes read, 30 written.
  const model::KernelWork work = work_of("linear", Type::kFloat16, {{"batch", 2}, {"seq", 3}, {"in", 4}, {"out", 5}});
  EXPECT_EQ(work.flops, 240);
  EXPECT_EQ(work.read_bytes, 88);
  EXPECT_EQ(work.write_bytes, 60);
}

TEST(Linear, CpuEqualsTheReference) {
  EXPECT_LT(cpu_error("linear", Type::kFloat32, {{"batch", 3}, {"seq", 7}, {"in", 100}, {"out", 41}}), 1e-5);
}

TEST(Linear, RefusesTokensThatCannotBeCounted) {
  const Axes huge{{"batch", std::int64_t{1} << 40}, {"seq", std::int64_t{1} << 40}};
  EXPECT_FALSE(make_problem(*find_operator("linear"), Type::kBfloat16, huge));
}

}  // namespace
}  // namespace llmprof::bench
