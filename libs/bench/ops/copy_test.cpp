#include <gtest/gtest.h>

#include "bench/operator.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

TEST(Copy, CopiesByHand) {
  EXPECT_EQ(run_reference("copy", Type::kFloat32, {{"values", 3}}, {{1, -2, 3}})[1], (std::vector<double>{1, -2, 3}));
}

TEST(Copy, WorkByHand) {
  const model::KernelWork work = work_of("copy", Type::kBfloat16, {{"values", 1000}});
  EXPECT_EQ(work.flops, 0);
  EXPECT_EQ(work.read_bytes, 2000);
  EXPECT_EQ(work.write_bytes, 2000);
}

TEST(Copy, CpuEqualsTheReference) {
  EXPECT_EQ(cpu_error("copy", Type::kFloat32, {{"values", 100'003}}), 0);
  EXPECT_EQ(cpu_error("copy", Type::kFloat32, {{"values", 1}}), 0);
}

}  // namespace
}  // namespace llmprof::bench
