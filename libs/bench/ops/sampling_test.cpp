#include <gtest/gtest.h>

#include "bench/operator.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

TEST(Sampling, ArgmaxByHand) {
  // Of two equal logits the first one.
  const auto tensors = run_reference("sampling", Type::kFloat32, {{"batch", 2}, {"vocab", 4}, {"k", 1}},
                                     {{1, 7, 7, -2, -5, -4, -3, -6}});
  EXPECT_EQ(tensors[1], (std::vector<double>{7, -3}));
  EXPECT_EQ(tensors[2], (std::vector<double>{1, 2}));
}

TEST(Sampling, TopThreeByHand) {
  const auto tensors =
      run_reference("sampling", Type::kFloat32, {{"batch", 1}, {"vocab", 6}, {"k", 3}}, {{2, 5, -1, 2, 9, 2}});
  EXPECT_EQ(tensors[1], (std::vector<double>{9, 5, 2}));
  EXPECT_EQ(tensors[2], (std::vector<double>{4, 1, 0}));
}

TEST(Sampling, WorkByHand) {
  // 3 rows of 1000 logits of 2 bytes read; 3 * 5 values of 2 bytes and as many indices of 4 written.
  const model::KernelWork work = work_of("sampling", Type::kBfloat16, {{"batch", 3}, {"vocab", 1000}, {"k", 5}});
  EXPECT_EQ(work.flops, 0);
  EXPECT_EQ(work.read_bytes, 6000);
  EXPECT_EQ(work.write_bytes, 90);
}

TEST(Sampling, CpuEqualsTheReference) {
  EXPECT_EQ(cpu_error("sampling", Type::kFloat32, {{"batch", 3}, {"vocab", 40000}, {"k", 1}}), 0);
  EXPECT_EQ(cpu_error("sampling", Type::kFloat32, {{"batch", 3}, {"vocab", 40000}, {"k", 50}}), 0);
  EXPECT_EQ(cpu_error("sampling", Type::kFloat32, {{"batch", 20}, {"vocab", 100}, {"k", 100}}), 0);  // all of them
}

TEST(Sampling, RefusesMoreThanThereAre) {
  const auto problem =
      make_problem(*find_operator("sampling"), Type::kFloat32, Axes{{"batch", 1}, {"vocab", 10}, {"k", 11}});
  ASSERT_FALSE(problem);
  EXPECT_EQ(problem.error().code, ErrorCode::kUsage);
  EXPECT_EQ(problem.error().message, "sampling: k = 11 of a vocabulary of 10");
}

}  // namespace
}  // namespace llmprof::bench
