#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "bench/operator.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

TEST(Softmax, ByHand) {
  // e^(ln 1), e^(ln 2), e^(ln 5) are 1, 2 and 5 of 8. The second row is the first with 1000 added: exp alone overflows.
  const std::vector<double> row{0, std::log(2.0), std::log(5.0)};
  const auto tensors = run_reference("softmax", Type::kFloat32, {{"seq", 2}, {"hidden", 3}},
                                     {{row[0], row[1], row[2], 1000 + row[0], 1000 + row[1], 1000 + row[2]}});
  const std::vector<double> expected{0.125, 0.25, 0.625, 0.125, 0.25, 0.625};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(tensors[1][i], expected[i], 1e-12) << i;
}

TEST(Softmax, RowsSumToOne) {
  const std::int64_t width = 1001;
  const TensorSpec spec{.elements = 3 * width, .fill = {.scale = 5}};
  const auto y = run_reference("softmax", Type::kFloat32, {{"seq", 3}, {"hidden", width}}, {random_values(spec, 7)})[1];
  for (std::int64_t row = 0; row < 3; ++row) {
    EXPECT_NEAR(std::accumulate(y.begin() + row * width, y.begin() + (row + 1) * width, 0.0), 1, 1e-12) << row;
  }
}

TEST(Softmax, WorkByHand) {
  // 10 rows of 8 values read and written, 2 bytes each.
  const model::KernelWork work = work_of("softmax", Type::kBfloat16, {{"batch", 2}, {"seq", 5}, {"hidden", 8}});
  EXPECT_EQ(work.flops, 0);
  EXPECT_EQ(work.read_bytes, 160);
  EXPECT_EQ(work.write_bytes, 160);
}

TEST(Softmax, CpuEqualsTheReference) {
  // float32 holds a distance of 16 to 32 from the largest value to 1e-6, and that is its exponential's relative error.
  for (const auto& [rows, width] : {std::pair{21, 1001}, std::pair{2, 128256}, std::pair{2, 1}}) {
    EXPECT_LT(cpu_error("softmax", Type::kFloat32, {{"seq", rows}, {"hidden", width}}), 3e-6) << width;
  }
}

}  // namespace
}  // namespace llmprof::bench
