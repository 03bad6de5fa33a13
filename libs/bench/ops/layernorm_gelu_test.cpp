#include <gtest/gtest.h>

#include "bench/operator.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

TEST(LayernormGelu, IsTheOneAfterTheOther) {
  const Axes axes{{"hidden", 4}};
  const std::vector<std::vector<double>> inputs{{1, 2, 3, 4}, {1, -1, 2, 1}, {0, 1, 0, -2}};
  const auto normed = run_reference("layernorm", Type::kFloat32, axes, inputs)[3];
  EXPECT_EQ(run_reference("layernorm_gelu", Type::kFloat32, axes, inputs)[3],
            run_reference("gelu", Type::kFloat32, axes, {normed})[1]);
}

TEST(LayernormGelu, WorkByHand) {
  // As layernorm alone: 10 rows of 8 values read and written, 8 weights and 8 biases read, 2 bytes each.
  const model::KernelWork work = work_of("layernorm_gelu", Type::kBfloat16, {{"batch", 2}, {"seq", 5}, {"hidden", 8}});
  EXPECT_EQ(work.flops, 0);
  EXPECT_EQ(work.read_bytes, 192);
  EXPECT_EQ(work.write_bytes, 160);
}

TEST(LayernormGelu, CpuEqualsTheReference) {
  EXPECT_LT(cpu_error("layernorm_gelu", Type::kFloat32, {{"batch", 3}, {"seq", 7}, {"hidden", 1001}}), 2e-6);
}

}  // namespace
}  // namespace llmprof::bench
