#include <gtest/gtest.h>

#include "bench/operator.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

TEST(SiluMul, GatesByHand) {
  // sigmoid(1) = 0.7310586, sigmoid(-1) = 0.2689414. Each row: two gates, then the two values they are for.
  const auto tensors =
      run_reference("silu_mul", Type::kFloat32, {{"seq", 2}, {"intermediate", 2}}, {{1, -1, 10, 100, 0, 1, 5, -1}});
  const std::vector<double> expected{7.310586, -26.89414, 0, -0.7310586};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(tensors[1][i], expected[i], 1e-5) << i;
}

TEST(SiluMul, WorkByHand) {
  // 10 rows: 16 values read, 8 written, 2 bytes each.
  const model::KernelWork work = work_of("silu_mul", Type::kBfloat16, {{"batch", 2}, {"seq", 5}, {"intermediate", 8}});
  EXPECT_EQ(work.flops, 0);
  EXPECT_EQ(work.read_bytes, 320);
  EXPECT_EQ(work.write_bytes, 160);
}

TEST(SiluMul, CpuEqualsTheReference) {
  EXPECT_LT(cpu_error("silu_mul", Type::kFloat32, {{"batch", 3}, {"seq", 7}, {"intermediate", 1001}}), 1e-6);
}

}  // namespace
}  // namespace llmprof::bench
