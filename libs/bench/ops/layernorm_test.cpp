#include <gtest/gtest.h>

#include <cmath>

#include "bench/operator.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

TEST(Layernorm, NormsByHand) {
  // {1, 2, 3, 4}: mean 2.5, variance (2.25 + 0.25 + 0.25 + 2.25) / 4 = 1.25; eps is 1e-5.
  const double scale = 1 / std::sqrt(1.25001);  // 0.894424
  const auto tensors =
      run_reference("layernorm", Type::kFloat32, {{"hidden", 4}}, {{1, 2, 3, 4}, {1, 1, 1, 2}, {0, 0, 10, 0}});
  const std::vector<double> expected{-1.5 * scale, -0.5 * scale, 0.5 * scale + 10, 3 * scale};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(tensors[3][i], expected[i], 1e-9) << i;
}

TEST(Layernorm, AConstantAddedToARowChangesNothing) {
  const std::vector<double> ones(4, 1), zeros(4, 0);
  const auto tensors = run_reference("layernorm", Type::kFloat32, {{"seq", 2}, {"hidden", 4}},
                                     {{1, 2, 3, 4, 1001, 1002, 1003, 1004}, ones, zeros});
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(tensors[3][i], tensors[3][4 + i], 1e-9) << i;
}

TEST(Layernorm, WorkByHand) {
  // 10 rows of 8 values read and written, 8 weights and 8 biases read, 2 bytes each.
  const model::KernelWork work = work_of("layernorm", Type::kFloat16, {{"batch", 2}, {"seq", 5}, {"hidden", 8}});
  EXPECT_EQ(work.flops, 0);
  EXPECT_EQ(work.read_bytes, 192);
  EXPECT_EQ(work.write_bytes, 160);
}

TEST(Layernorm, CpuEqualsTheReference) {
  EXPECT_LT(cpu_error("layernorm", Type::kFloat32, {{"batch", 3}, {"seq", 7}, {"hidden", 1001}}), 1e-6);
}

}  // namespace
}  // namespace llmprof::bench
