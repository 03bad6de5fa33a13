#include <gtest/gtest.h>

#include "bench/operator.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

TEST(ResidualAdd, AddsByHand) {
  const auto tensors = run_reference("residual_add", Type::kFloat32, {{"hidden", 3}}, {{1, 2, 3}, {10, -2, 0.5}});
  EXPECT_EQ(tensors[2], (std::vector<double>{11, 0, 3.5}));
}

TEST(ResidualAdd, WorkByHand) {
  // 2 * 5 rows of 8 values: two tensors of 80 values read, one written, 2 bytes each.
  const model::KernelWork work = work_of("residual_add", Type::kBfloat16, {{"batch", 2}, {"seq", 5}, {"hidden", 8}});
  EXPECT_EQ(work.flops, 0);
  EXPECT_EQ(work.read_bytes, 320);
  EXPECT_EQ(work.write_bytes, 160);
}

TEST(ResidualAdd, CpuEqualsTheReference) {
  EXPECT_LT(cpu_error("residual_add", Type::kFloat32, {{"batch", 3}, {"seq", 7}, {"hidden", 1000}}), 1e-6);
}

}  // namespace
}  // namespace llmprof::bench
