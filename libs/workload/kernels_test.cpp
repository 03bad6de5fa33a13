// Every inner loop, in both compilations, against its definition in double.

#include "workload/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace llmprof::workload {
namespace {

class KernelsTest : public testing::TestWithParam<const RowKernels*> {
 protected:
  void SetUp() override {
    if (GetParam() == &kAvx2Kernels && &kernels() != &kAvx2Kernels) GTEST_SKIP() << "this machine has no AVX2";
  }
  const RowKernels& k() const { return *GetParam(); }

  // Odd lengths reach the ends of vectorised loops.
  static std::vector<float> ramp(int n, float scale) {
    std::vector<float> x(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = scale * std::sin(static_cast<float>(3 * i + 1));
    return x;
  }
};

INSTANTIATE_TEST_SUITE_P(Sets, KernelsTest, testing::Values(&kBaselineKernels, &kAvx2Kernels),
                         [](const auto& set) { return set.param == &kAvx2Kernels ? "avx2" : "baseline"; });

TEST_P(KernelsTest, SiluMultiply) {
  std::vector<float> gate = ramp(37, 30.0F);
  const std::vector<float> before = gate;
  const std::vector<float> up = ramp(37, 2.0F);
  k().silu_multiply(gate.data(), up.data(), 37);
  for (std::size_t i = 0; i < 37; ++i) {
    const double expected = before[i] / (1 + std::exp(-static_cast<double>(before[i]))) * up[i];
    EXPECT_NEAR(gate[i], expected, 1e-6 * std::abs(expected) + 1e-12) << i;
  }
}

TEST_P(KernelsTest, Gelu) {
  std::vector<float> x = ramp(37, 6.0F);
  const std::vector<float> before = x;
  k().gelu(x.data(), 37);
  for (std::size_t i = 0; i < 37; ++i) {
    const double b = before[i];
    const double expected = 0.5 * b * (1 + std::tanh(std::sqrt(2 / M_PI) * (b + 0.044715 * b * b * b)));
    EXPECT_NEAR(x[i], expected, 4e-6) << b;
  }
}

TEST_P(KernelsTest, SoftmaxSumsToOneAlsoForHugeScores) {
  std::vector<float> row = ramp(19, 1000.0F);
  const std::vector<float> before = row;
  k().softmax(row.data(), 0.01F, 19);
  double total = 0;
  for (const float score : before) total += std::exp(0.01 * score);
  double sum = 0;
  for (std::size_t i = 0; i < 19; ++i) {
    EXPECT_NEAR(row[i], std::exp(0.01 * before[i]) / total, 1e-6);
    sum += row[i];
  }
  EXPECT_NEAR(sum, 1.0, 1e-6);
}

TEST_P(KernelsTest, Norms) {
  const std::vector<float> x = ramp(45, 3.0F);
  const std::vector<float> weight = ramp(45, 1.5F);
  const std::vector<float> bias = ramp(45, 0.5F);
  double mean = 0;
  double mean_square = 0;
  for (const float value : x) mean += value / 45.0;
  for (const float value : x) mean_square += static_cast<double>(value) * value / 45;
  const double variance = mean_square - mean * mean;
  std::vector<float> rms(45), layer(45);
  k().rms_norm(x.data(), weight.data(), 0.1F, 45, rms.data());
  k().layer_norm(x.data(), weight.data(), bias.data(), 0.1F, 45, layer.data());
  for (std::size_t i = 0; i < 45; ++i) {
    EXPECT_NEAR(rms[i], x[i] / std::sqrt(mean_square + 0.1) * weight[i], 1e-5);
    EXPECT_NEAR(layer[i], (x[i] - mean) / std::sqrt(variance + 0.1) * weight[i] + bias[i], 1e-5);
  }
}

TEST_P(KernelsTest, RotateTurnsPairsAndKeepsTheirLength) {
  const std::vector<float> x = ramp(10, 1.0F);
  std::vector<float> cosine, sine, out(10);
  for (int i = 0; i < 5; ++i) {
    cosine.push_back(std::cos(0.3F * static_cast<float>(i)));
    sine.push_back(std::sin(0.3F * static_cast<float>(i)));
  }
  k().rotate(x.data(), cosine.data(), sine.data(), 5, out.data());
  EXPECT_FLOAT_EQ(out[0], x[0]);  // angle 0
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(std::hypot(out[i], out[i + 5]), std::hypot(x[i], x[i + 5]), 1e-6);
    EXPECT_NEAR(out[i + 5], x[i + 5] * cosine[i] + x[i] * sine[i], 1e-6);
  }
}

TEST_P(KernelsTest, AttendIsTheWeightedMeanOfTheValues) {
  const std::vector<float> query = ramp(11, 1.0F);
  const std::vector<float> keys = ramp(7 * 11, 1.0F);
  const std::vector<float> values = ramp(7 * 11, 2.0F);
  std::vector<float> scores(7), out(11);
  k().attend({query.data(), keys.data(), values.data(), 7, 11, 0.5F}, scores.data(), out.data());
  std::vector<double> weight(7);
  double total = 0;
  for (std::size_t t = 0; t < 7; ++t) {
    double score = 0;
    for (std::size_t d = 0; d < 11; ++d) score += static_cast<double>(query[d]) * keys[t * 11 + d];
    total += weight[t] = std::exp(0.5 * score);
  }
  for (std::size_t d = 0; d < 11; ++d) {
    double expected = 0;
    for (std::size_t t = 0; t < 7; ++t) expected += weight[t] / total * values[t * 11 + d];
    EXPECT_NEAR(out[d], expected, 1e-5);
  }
}

TEST_P(KernelsTest, RandomNumbersAreTheSameHoweverTheyAreSplit) {
  std::vector<float> whole(101), parts(101);
  k().fill_random(whole.data(), 0, 101, 9, 1.0F, 0.5F);
  k().fill_random(parts.data(), 0, 33, 9, 1.0F, 0.5F);
  k().fill_random(parts.data() + 33, 33, 68, 9, 1.0F, 0.5F);
  EXPECT_EQ(whole, parts);
  for (const float value : whole) EXPECT_TRUE(value >= 0.5F && value < 1.5F) << value;
  EXPECT_NE(whole[0], whole[1]);
}

// The kernels of training; that they are the slopes they claim to be is held in train/gradients_test.cpp. Here: both
// compilations give the same, also at the odd ends of loops.
TEST_P(KernelsTest, TrainingKernelsEqualTheBaseline) {
  constexpr int kN = 37;
  const std::vector<float> x = ramp(kN, 3.0F), weight = ramp(kN, 1.5F), dy = ramp(kN, 0.7F);
  const auto outputs = [&](const RowKernels& set) {
    std::vector<float> out = ramp(kN, 0.1F), dweight(kN), dbias(kN), gelu = dy, scores = dy, scaled = x;
    const RowStatistics row = set.layer_norm_backward(x.data(), weight.data(), dy.data(), 0.1F, kN, out.data());
    set.layer_norm_gradients(x.data(), dy.data(), row, kN, dweight.data(), dbias.data());
    set.gelu_backward(x.data(), gelu.data(), kN);
    set.softmax_backward(weight.data(), scores.data(), 0.5F, kN);
    set.multiply(scaled.data(), 0.25F, kN);
    std::vector<float> parameter = x, first = weight, second(kN, 0.3F);
    set.adamw({0.1F, 0.9F, 0.99F, 1e-8F, 0.01F, 2.0F, 3.0F}, dy.data(), kN, parameter.data(), first.data(),
              second.data());
    for (const auto* more : {&dweight, &dbias, &gelu, &scores, &scaled, &parameter, &first, &second}) {
      out.insert(out.end(), more->begin(), more->end());
    }
    return out;
  };
  const std::vector<float> actual = outputs(k()), expected = outputs(kBaselineKernels);
  ASSERT_EQ(actual.size(), 9U * kN);
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 2e-6 * (1 + std::abs(expected[i]))) << i;
  }
  EXPECT_FLOAT_EQ(actual[5 * kN + 3], 0.25F * x[3]);
}

}  // namespace
}  // namespace llmprof::workload
