#include <gtest/gtest.h>

#include "bench/operator.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

TEST(Rmsnorm, NormsByHand) {
  // Mean of squares of {3, 4, 0, 0}: 25 / 4, its root 2.5. Doubling a row changes nothing but what eps = 1e-6 adds.
  const auto tensors =
      run_reference("rmsnorm", Type::kFloat32, {{"seq", 2}, {"hidden", 4}}, {{3, 4, 0, 0, 6, 8, 0, 0}, {1, 2, 1, 1}});
  const std::vector<double> expected{1.2, 3.2, 0, 0, 1.2, 3.2, 0, 0};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(tensors[2][i], expected[i], 1e-6) << i;
}

TEST(Rmsnorm, WorkByHand) {
  // 10 rows of 8 values read and written, 8 weights read, 2 bytes each.
  const model::KernelWork work = work_of("rmsnorm", Type::kBfloat16, {{"batch", 2}, {"seq", 5}, {"hidden", 8}});
  EXPECT_EQ(work.flops, 0);
  EXPECT_EQ(work.read_bytes, 176);
  EXPECT_EQ(work.write_bytes, 160);
}

TEST(Rmsnorm, CpuEqualsTheReference) {
  EXPECT_LT(cpu_error("rmsnorm", Type::kFloat32, {{"batch", 3}, {"seq", 7}, {"hidden", 1001}}), 1e-6);
  EXPECT_LT(cpu_error("rmsnorm", Type::kFloat32, {{"seq", 1}, {"hidden", 1}}), 1e-6);
}

TEST(Rmsnorm, SizesThatNoMemoryHoldsAreErrors) {
  const Operator& op = *find_operator("rmsnorm");
  const std::int64_t huge = std::int64_t{1} << 40;
  const auto product = make_problem(op, Type::kFloat32, Axes{{"batch", huge}, {"seq", huge}, {"hidden", 4}});
  ASSERT_FALSE(product);
  EXPECT_NE(product.error().message.find("batch=1099511627776"), std::string::npos) << product.error().message;
  const auto row = make_problem(op, Type::kFloat32, Axes{{"hidden", std::int64_t{1} << 31}});
  ASSERT_FALSE(row);
  EXPECT_NE(row.error().message.find("hidden = 2147483648"), std::string::npos) << row.error().message;
}

}  // namespace
}  // namespace llmprof::bench
