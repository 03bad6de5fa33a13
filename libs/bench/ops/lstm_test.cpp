#include <gtest/gtest.h>

#include <cmath>

#include "bench/operator.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

Axes sizes(std::int64_t batch, std::int64_t seq, std::int64_t in, std::int64_t hidden, std::int64_t layers) {
  return {{"batch", batch}, {"seq", seq}, {"in", in}, {"hidden", hidden}, {"layers", layers}};
}

TEST(Lstm, OneStepByHand) {
  // x = 1, h = 0.5, c = 2. Gates i, f, c, o:
  //   i = 0.1 * 1 + 1 * 0.5 + 0.5 + 0   = 1.1
  //   f = 0.2 * 1 + 2 * 0.5 - 0.5 + 0   = 0.7
  //   c = 0.3 * 1 - 1 * 0.5 + 0 + 0.2   = 0      tanh: 0
  //   o = 0.4 * 1 + 0 * 0.5 + 1 - 1     = 0.4
  // New c = sigmoid(0.7) * 2 + sigmoid(1.1) * 0 = 1.3363755; h = sigmoid(0.4) * tanh(1.3363755) = 0.5213366.
  const std::vector<double> weights{0.1, 0.2, 0.3, 0.4, 1, 2, -1, 0, 0.5, -0.5, 0, 1, 0, 0, 0.2, -1};
  const auto tensors = run_reference("lstm", Type::kFloat32, sizes(1, 1, 1, 1, 1), {{1}, {0.5}, {2}, weights});
  EXPECT_NEAR(tensors[4][0], 0.5213366, 1e-7);
  EXPECT_NEAR(tensors[5][0], 0.5213366, 1e-7);
  EXPECT_NEAR(tensors[6][0], 1.3363755, 1e-7);
}

TEST(Lstm, WithoutWeightsTheStateHalvesAtEveryStep) {
  // All gates are sigmoid(0) = 0.5, what is added is tanh(0) = 0: c = 16, 8, 4, 2, and h = 0.5 * tanh(c). Every layer
  // has its own state; y is the last layer's.
  const std::vector<double> weights(16 + 16);
  const auto tensors =
      run_reference("lstm", Type::kFloat32, sizes(1, 3, 1, 1, 2), {{1, 2, 3}, {5, 6}, {16, 8}, weights});
  EXPECT_NEAR(tensors[6][0], 2, 1e-12);
  EXPECT_NEAR(tensors[6][1], 1, 1e-12);
  EXPECT_NEAR(tensors[5][0], 0.5 * std::tanh(2.0), 1e-12);
  EXPECT_NEAR(tensors[4][0], 0.5 * std::tanh(4.0), 1e-12);
  EXPECT_NEAR(tensors[4][2], 0.5 * std::tanh(1.0), 1e-12);
}

TEST(Lstm, ASecondLayerReadsTheFirst) {
  // in = 2, so layer 0 has 8 weights W and 4 R, layer 1 has 4 W and 4 R; then 8 biases each. Layer 0 gives
  // h = 0.5 * tanh(0.5 * 2); only the cell gate of layer 1 has a weight, 1, at index 12 + 2: c = 0.5 * tanh(h).
  std::vector<double> weights(20 + 16);
  weights[14] = 1;
  const auto tensors = run_reference("lstm", Type::kFloat32, sizes(1, 1, 2, 1, 2), {{7, 9}, {0, 0}, {2, 0}, weights});
  const double h = 0.5 * std::tanh(1.0);
  EXPECT_NEAR(tensors[6][1], 0.5 * std::tanh(h), 1e-12);
}

TEST(Lstm, WorkByHand) {
  // Weights: 4 * 5 * (4 + 5) of layer 0 and 4 * 5 * (5 + 5) of layer 1 are 380, used by each of 2 * 3 rows; 80 biases.
  // Inputs 6 * 4, states 2 * 2 * 5 twice; 6 * 5 results, and the states again.
  const model::KernelWork work = work_of("lstm", Type::kFloat16, sizes(2, 3, 4, 5, 2));
  EXPECT_EQ(work.flops, 2 * 6 * 380);
  EXPECT_EQ(work.read_bytes, 2 * (380 + 80 + 24 + 40));
  EXPECT_EQ(work.write_bytes, 2 * (30 + 40));
}

TEST(Lstm, CpuEqualsTheReference) {
  EXPECT_LT(cpu_error("lstm", Type::kFloat32, sizes(3, 5, 33, 47, 2)), 1e-6);
  EXPECT_LT(cpu_error("lstm", Type::kFloat32, sizes(1, 2, 7, 130, 1)), 1e-6);
}

TEST(Lstm, RefusesSizesThatOverflow) {
  for (const char* axis : {"batch", "seq", "in", "hidden", "layers"}) {
    EXPECT_FALSE(make_problem(*find_operator("lstm"), Type::kFloat32, Axes{{axis, std::int64_t{1} << 62}})) << axis;
  }
}

}  // namespace
}  // namespace llmprof::bench
