#include <gtest/gtest.h>

#include "bench/operator.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

TEST(ResidualRmsnorm, AddsAndNormsByHand) {
  // {1, 5, -1, 2} + {2, -1, 1, -2} = {3, 4, 0, 0}, whose root mean square is 2.5.
  const auto tensors =
      run_reference("residual_rmsnorm", Type::kFloat32, {{"hidden", 4}}, {{1, 5, -1, 2}, {2, -1, 1, -2}, {1, 2, 1, 1}});
  EXPECT_EQ(tensors[3], (std::vector<double>{3, 4, 0, 0}));
  const std::vector<double> expected{1.2, 3.2, 0, 0};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(tensors[4][i], expected[i], 1e-6) << i;
}

TEST(ResidualRmsnorm, WorkByHand) {
  // 10 rows of 8 values: two tensors read, two written, 8 weights read, 4 bytes each.
  const model::KernelWork work = work_of("residual_rmsnorm", Type::kFloat32, {{"batch", 2}, {"seq", 5}, {"hidden", 8}});
  EXPECT_EQ(work.flops, 0);
  EXPECT_EQ(work.read_bytes, 672);
  EXPECT_EQ(work.write_bytes, 640);
}

TEST(ResidualRmsnorm, CpuEqualsTheReference) {
  EXPECT_LT(cpu_error("residual_rmsnorm", Type::kFloat32, {{"batch", 3}, {"seq", 7}, {"hidden", 1001}}), 1e-6);
}

}  // namespace
}  // namespace llmprof::bench
