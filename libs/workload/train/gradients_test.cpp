// The way back through each operator, against central differences of the operator's definition in double.

#include "workload/train/operators.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

namespace llmprof::workload {
namespace {

using Values = std::vector<float>;

// The gradients are float32 sums of at most some hundred terms of size 1; the differences below err by h² = 1e-6
// relative and by rounding of 1e-16 / h. So 2e-5 of the largest gradient is noise, and any wrong term is far more.
constexpr double kTolerance = 2e-5;
constexpr double kStep = 1e-3;

Values ramp(std::int64_t n, double scale, double phase = 0) {
  Values x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(scale * std::sin(phase + 1.7 * static_cast<double>(i) + 0.3));
  }
  return x;
}

// loss(x) is a sum in double; gradient[i] must be its slope in x[i].
void expect_slopes(const Values& gradient, const Values& x,
                   const std::function<double(const std::vector<double>&)>& loss) {
  ASSERT_EQ(gradient.size(), x.size());
  std::vector<double> at(x.begin(), x.end());
  std::vector<double> slopes;
  double largest = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    at[i] = x[i] + kStep;
    const double above = loss(at);
    at[i] = x[i] - kStep;
    slopes.push_back((above - loss(at)) / (2 * kStep));
    at[i] = x[i];
    largest = std::max(largest, std::abs(slopes.back()));
  }
  EXPECT_GT(largest, 1e-3) << "nothing to compare";
  for (std::size_t i = 0; i < slopes.size(); ++i) EXPECT_NEAR(gradient[i], slopes[i], kTolerance * largest) << i;
}

double dot(const std::vector<double>& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < b.size(); ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<double> widened(const Values& x) { return {x.begin(), x.end()}; }

class GradientsTest : public testing::TestWithParam<int> {
 protected:
  double seed() const { return GetParam(); }
  ThreadPool pool_{2};
};

INSTANTIATE_TEST_SUITE_P(Seeds, GradientsTest, testing::Values(1, 2, 3));

TEST_P(GradientsTest, Linear) {
  constexpr std::int64_t kRows = 7, kIn = 5, kOut = 9;
  const Values w = ramp(kOut * kIn, 0.5, seed()), b = ramp(kOut, 0.3, seed()), x = ramp(kRows * kIn, 1, 2 * seed());
  const Values dy = ramp(kRows * kOut, 1, 3 * seed());
  const auto y = [&](const std::vector<double>& weight, const std::vector<double>& bias,
                     const std::vector<double>& in) {
    std::vector<double> out;
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t o = 0; o < kOut; ++o) {
        double sum = bias[o];
        for (std::int64_t i = 0; i < kIn; ++i) sum += weight[o * kIn + i] * in[r * kIn + i];
        out.push_back(sum);
      }
    }
    return out;
  };
  // Gradients of parameters are replaced, whatever was there.
  Values dw(w.size(), 99.0F), db(b.size(), 99.0F), dx(x.size(), 99.0F);
  linear_backward({w.data(), b.data(), kIn, kOut}, x.data(), dy.data(), kRows, {dw.data(), db.data()}, dx.data(),
                  pool_);
  const std::vector<double> w0 = widened(w), b0 = widened(b), x0 = widened(x);
  expect_slopes(dx, x, [&](const auto& v) { return dot(y(w0, b0, v), dy); });
  expect_slopes(dw, w, [&](const auto& v) { return dot(y(v, b0, x0), dy); });
  expect_slopes(db, b, [&](const auto& v) { return dot(y(w0, v, x0), dy); });
}

TEST_P(GradientsTest, LayerNorm) {
  constexpr std::int64_t kRows = 5, kColumns = 19;
  constexpr double kEpsilon = 0.01;
  const Values w = ramp(kColumns, 1.5, seed()), b = ramp(kColumns, 0.3, seed());
  const Values x = ramp(kRows * kColumns, 2, 2 * seed()), dy = ramp(kRows * kColumns, 1, 3 * seed());
  const auto y = [&](const std::vector<double>& weight, const std::vector<double>& bias,
                     const std::vector<double>& in) {
    std::vector<double> out;
    for (std::int64_t r = 0; r < kRows; ++r) {
      const double* const row = in.data() + r * kColumns;
      double mean = 0, variance = 0;
      for (std::int64_t i = 0; i < kColumns; ++i) mean += row[i] / kColumns;
      for (std::int64_t i = 0; i < kColumns; ++i) variance += (row[i] - mean) * (row[i] - mean) / kColumns;
      for (std::int64_t i = 0; i < kColumns; ++i) {
        out.push_back((row[i] - mean) / std::sqrt(variance + kEpsilon) * weight[i] + bias[i]);
      }
    }
    return out;
  };
  Values dw(w.size(), 99.0F), db(b.size(), 99.0F), dx(x.size(), 0.0F);
  const NormInput input{x.data(), kRows, kColumns, static_cast<float>(kEpsilon)};
  layer_norm_backward({w.data(), b.data()}, input, dy.data(), {dw.data(), db.data()}, dx.data(), pool_);
  const std::vector<double> w0 = widened(w), b0 = widened(b), x0 = widened(x);
  expect_slopes(dx, x, [&](const auto& v) { return dot(y(w0, b0, v), dy); });
  expect_slopes(dw, w, [&](const auto& v) { return dot(y(v, b0, x0), dy); });
  expect_slopes(db, b, [&](const auto& v) { return dot(y(w0, v, x0), dy); });

  // The gradient of the input is added to what the residual stream brings.
  Values again(x.size(), 1.0F);
  layer_norm_backward({w.data(), b.data()}, input, dy.data(), {dw.data(), db.data()}, again.data(), pool_);
  for (std::size_t i = 0; i < dx.size(); ++i) EXPECT_NEAR(again[i], 1 + dx[i], 1e-6);
}

TEST_P(GradientsTest, Gelu) {
  const Values x = ramp(37, 4, seed()), dy = ramp(37, 1, 2 * seed());
  Values dx = dy;
  gelu_backward(x.data(), dx.data(), 37, pool_);
  expect_slopes(dx, x, [&](const std::vector<double>& v) {
    std::vector<double> y;
    for (const double e : v) y.push_back(0.5 * e * (1 + std::tanh(std::sqrt(2 / M_PI) * (e + 0.044715 * e * e * e))));
    return dot(y, dy);
  });
}

TEST_P(GradientsTest, CausalAttention) {
  constexpr std::int64_t kBatch = 2, kTokens = 5, kHeads = 3, kDim = 4, kWidth = kHeads * kDim;
  const Values qkv = ramp(kBatch * kTokens * 3 * kWidth, 1, seed());
  const Values dout = ramp(kBatch * kTokens * kWidth, 1, 2 * seed());
  const auto attend = [&](const std::vector<double>& in) {
    std::vector<double> out(dout.size());
    for (std::int64_t b = 0; b < kBatch; ++b) {
      for (std::int64_t h = 0; h < kHeads; ++h) {
        for (std::int64_t t = 0; t < kTokens; ++t) {
          const auto at = [&](std::int64_t row, std::int64_t which) {  // which: 0 q, 1 k, 2 v
            return in.data() + ((b * kTokens + row) * 3 + which) * kWidth + h * kDim;
          };
          std::vector<double> weight;
          double total = 0;
          for (std::int64_t s = 0; s <= t; ++s) {
            double score = 0;
            for (std::int64_t d = 0; d < kDim; ++d) score += at(t, 0)[d] * at(s, 1)[d];
            weight.push_back(std::exp(score / 2));  // sqrt of 4 dimensions
            total += weight.back();
          }
          for (std::int64_t d = 0; d < kDim; ++d) {
            for (std::int64_t s = 0; s <= t; ++s) {
              out[(b * kTokens + t) * kWidth + h * kDim + d] += weight[s] / total * at(s, 2)[d];
            }
          }
        }
      }
    }
    return out;
  };
  Values probabilities(kBatch * kHeads * kTokens * kTokens), out(dout.size()), dqkv(qkv.size(), 99.0F);
  const CausalAttention attention{kBatch, kTokens, kHeads, kDim, qkv.data(), probabilities.data(), pool_};
  attend_forward(attention, out.data());
  const std::vector<double> expected = attend(widened(qkv));
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], expected[i], 1e-5) << i;
  FloatBuffer scratch;
  attend_backward(attention, dout.data(), scratch, dqkv.data());
  expect_slopes(dqkv, qkv, [&](const auto& v) { return dot(attend(v), dout); });
}

TEST_P(GradientsTest, CrossEntropy) {
  constexpr std::int64_t kVocab = 23;
  const std::vector<Token> targets{3, 22, 0, 3};
  const Values logits = ramp(4 * kVocab, 3, seed());
  const auto mean_loss = [&](const std::vector<double>& in) {
    double sum = 0;
    for (std::size_t r = 0; r < targets.size(); ++r) {
      double total = 0;
      for (std::int64_t i = 0; i < kVocab; ++i) total += std::exp(in[r * kVocab + i]);
      sum += std::log(total) - in[r * kVocab + targets[r]];
    }
    return sum / 4;
  };
  Values p = logits;
  EXPECT_NEAR(cross_entropy(targets, kVocab, p.data(), pool_), mean_loss(widened(logits)), 1e-6);
  cross_entropy_backward(targets, kVocab, p.data(), pool_);
  expect_slopes(p, logits, mean_loss);
}

// Token 4 occurs three times, in both sequences: its gradient is the sum of the three, added to what was there.
TEST_P(GradientsTest, Embedding) {
  constexpr std::int64_t kBatch = 2, kColumns = 18;
  const std::vector<Token> tokens{4, 1, 4, 0, 4, 2};
  const Values dx = ramp(6 * kColumns, 1, seed());
  Values token_table(6 * kColumns, 0.5F), position_table(5 * kColumns, 7.0F);
  embedding_backward(tokens, kBatch, kColumns, dx.data(), {token_table.data(), position_table.data()}, pool_);
  for (std::int64_t i = 0; i < kColumns; ++i) {
    const auto d = [&](std::int64_t row) { return dx[row * kColumns + i]; };
    EXPECT_NEAR(token_table[4 * kColumns + i], 0.5F + d(0) + d(2) + d(4), 1e-6);
    EXPECT_NEAR(token_table[1 * kColumns + i], 0.5F + d(1), 1e-6);
    EXPECT_EQ(token_table[3 * kColumns + i], 0.5F);  // does not occur
    EXPECT_NEAR(position_table[2 * kColumns + i], d(2) + d(5), 1e-6);
    EXPECT_EQ(position_table[3 * kColumns + i], 7.0F);  // behind the last position
  }
}

}  // namespace
}  // namespace llmprof::workload
