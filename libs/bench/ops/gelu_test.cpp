#include <gtest/gtest.h>

#include <cmath>

#include "bench/operator.h"
#include "bench/ops/cpu_math.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

TEST(Gelu, ByHand) {
  // Φ(1) = 0.841345 and Φ(-1) = 1 - Φ(1), from tables of the normal distribution; Φ(2) = 0.977250.
  const auto tensors = run_reference("gelu", Type::kFloat32, {{"hidden", 4}}, {{0, 1, -1, 2}});
  const std::vector<double> expected{0, 0.841345, -0.158655, 1.954500};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(tensors[1][i], expected[i], 1e-6) << i;
}

TEST(GeluTanh, ByHand) {
  // u(1) = 0.7978846 * 1.044715 = 0.8335606, tanh u = 0.6823839: 0.5 * 1.6823839. The exact gelu is 0.841345.
  const auto tensors = run_reference("gelu_tanh", Type::kFloat32, {{"hidden", 3}}, {{0, 1, -1}});
  const std::vector<double> expected{0, 0.8411920, -0.1588080};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(tensors[1][i], expected[i], 1e-6) << i;
}

TEST(Gelu, WorkByHand) {
  // 10 rows of 8 values read and written, 4 bytes each.
  for (const char* op : {"gelu", "gelu_tanh"}) {
    const model::KernelWork work = work_of(op, Type::kFloat32, {{"batch", 2}, {"seq", 5}, {"hidden", 8}});
    EXPECT_EQ(work.flops, 0);
    EXPECT_EQ(work.read_bytes, 320);
    EXPECT_EQ(work.write_bytes, 320);
  }
}

TEST(Gelu, CpuEqualsTheReference) {
  EXPECT_LT(cpu_error("gelu", Type::kFloat32, {{"batch", 3}, {"seq", 7}, {"hidden", 1001}}), 1e-6);
  EXPECT_LT(cpu_error("gelu_tanh", Type::kFloat32, {{"batch", 3}, {"seq", 7}, {"hidden", 1001}}), 1e-6);
}

TEST(CpuMath, ExponentialsAreRightOverTheWholeRange) {
  for (double x = -87; x <= 88; x += 0.37) {
    const double exact = std::exp(static_cast<double>(static_cast<float>(x)));
    EXPECT_NEAR(vector_exp(static_cast<float>(x)) / exact, 1, 4e-7) << x;
  }
  EXPECT_GT(vector_exp(1000), 1e38f);
  EXPECT_LT(vector_exp(-1000), 1e-37f);
}

}  // namespace
}  // namespace llmprof::bench
