#include <gtest/gtest.h>

#include "bench/operator.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

TEST(Gemm, MultipliesByHand) {
  // x = [1 2 3; 4 5 6], rows of w = [1 0 1], [0 1 0]: y = [1+3, 2; 4+6, 5].
  const auto tensors =
      run_reference("gemm", Type::kFloat32, {{"m", 2}, {"n", 2}, {"k", 3}}, {{1, 2, 3, 4, 5, 6}, {1, 0, 1, 0, 1, 0}});
  EXPECT_EQ(tensors[2], (std::vector<double>{4, 2, 10, 5}));
}

TEST(Gemm, ABatchHasItsOwnMatrices) {
  // 1 x 1 products of k = 2: [1 2]·[3 4] = 11, [5 6]·[7 8] = 83.
  const auto tensors =
      run_reference("gemm", Type::kFloat64, {{"m", 1}, {"n", 1}, {"k", 2}, {"batch", 2}}, {{1, 2, 5, 6}, {3, 4, 7, 8}});
  EXPECT_EQ(tensors[2], (std::vector<double>{11, 83}));
}

TEST(Gemm, WorkByHand) {
  // 2 * 3 * 5 * 7 operations, twice; x 15 and w 35 values read, y 21 written.
  const Axes axes{{"m", 3}, {"n", 7}, {"k", 5}, {"batch", 2}};
  const model::KernelWork half = work_of("gemm", Type::kBfloat16, axes);
  EXPECT_EQ(half.flops, 420);
  EXPECT_EQ(half.read_bytes, 2 * (15 + 35) * 2);
  EXPECT_EQ(half.write_bytes, 2 * 21 * 2);
  // One byte in; bfloat16 and int32 out.
  EXPECT_EQ(work_of("gemm", Type::kFloat8E4m3, axes).write_bytes, 2 * 21 * 2);
  EXPECT_EQ(work_of("gemm", Type::kInt8, axes).read_bytes, 2 * (15 + 35));
  EXPECT_EQ(work_of("gemm", Type::kInt8, axes).write_bytes, 2 * 21 * 4);
}

TEST(Gemm, CpuEqualsTheReference) {
  EXPECT_LT(cpu_error("gemm", Type::kFloat32, {{"m", 33}, {"n", 65}, {"k", 129}, {"batch", 2}}), 1e-5);
  EXPECT_LT(cpu_error("gemm", Type::kFloat32, {{"m", 1}, {"n", 65}, {"k", 129}}), 1e-5);
  EXPECT_LT(cpu_error("gemm", Type::kFloat64, {{"m", 33}, {"n", 17}, {"k", 64}}), 1e-13);
}

TEST(Gemm, TheSmallProblemKeepsWhatDivides) {
  const Problem big = problem_of("gemm", Type::kFloat8E4m3, {{"m", 8192}, {"n", 14336}, {"k", 4096}, {"batch", 9}});
  const Problem small = find_operator("gemm")->small(big);
  EXPECT_EQ(small.sizes(), "m=64 n=128 k=256 batch=3");
  // 4099 leaves 3 over 64: neither divides by 16.
  EXPECT_EQ(find_operator("gemm")->small(big.with("n", 4099)).at("n"), 131);
  EXPECT_EQ(find_operator("gemm")->small(big.with("m", 100)).at("m"), 100);
}

TEST(Gemm, RefusesWhatCannotBeAddressed) {
  const Axes huge{{"m", std::int64_t{1} << 40}, {"n", std::int64_t{1} << 40}, {"k", 1}};
  const auto problem = make_problem(*find_operator("gemm"), Type::kBfloat16, huge);
  ASSERT_FALSE(problem);
  EXPECT_EQ(problem.error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace llmprof::bench
