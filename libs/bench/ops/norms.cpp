// Norms of rows: LayerNorm alone and with the gelu that follows it, RMSNorm alone and with the sum before it.

#include <cmath>

#include "bench/ops/cpu_math.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {
namespace {

constexpr float kLayerNormEps = 1e-5f, kRmsNormEps = 1e-6f;

// y = activation((x - mean) / √(variance + eps) · weight + bias).
template <double (*kExact)(double), float (*kFast)(float)>
struct LayerNorm : RowOperator {
  static std::vector<TensorSpec> tensors(const Problem& problem) {
    const std::int64_t width = problem.at("hidden"), values = row_count(problem) * width;
    return {{"x", Role::kIn, problem.type, values},
            {"weight", Role::kIn, problem.type, width},
            {"bias", Role::kIn, problem.type, width},
            {"y", Role::kOut, problem.type, values}};
  }

  static void reference(const Problem& problem, std::span<std::vector<double>> t) {
    const auto width = static_cast<std::size_t>(problem.at("hidden"));
    for (std::size_t begin = 0; begin < t[0].size(); begin += width) {
      const double* x = t[0].data() + begin;
      double sum = 0, squares = 0;
      for (std::size_t i = 0; i < width; ++i) sum += x[i];
      const double mean = sum / static_cast<double>(width);
      for (std::size_t i = 0; i < width; ++i) squares += (x[i] - mean) * (x[i] - mean);
      const double scale = 1 / std::sqrt(squares / static_cast<double>(width) + kLayerNormEps);
      for (std::size_t i = 0; i < width; ++i) t[3][begin + i] = kExact((x[i] - mean) * scale * t[1][i] + t[2][i]);
    }
  }

  static void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
    const std::int64_t width = problem.at("hidden");
    const float *weight = floats(t[1]), *bias = floats(t[2]);
    each_row(team, row_count(problem), width, [&](std::int64_t row) {
      const float* x = floats(t[0]) + row * width;
      float* y = floats(t[3]) + row * width;
      const float mean = vector_sum(width, [&](std::int64_t i) { return x[i]; }) / static_cast<float>(width);
      const float squares = vector_sum(width, [&](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); });
      const float scale = 1 / std::sqrt(squares / static_cast<float>(width) + kLayerNormEps);
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) y[i] = kFast((x[i] - mean) * scale * weight[i] + bias[i]);
    });
  }

  static Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
    return row_call<4>(context, problem, kLayerNormEps);
  }
};

template <class T>
T unchanged(T value) {
  return value;
}

// y = x / √(mean of squares + eps) · weight: what Llama and its kin do before every block. With the residual sum before
// it, sum = x + residual, y of the sum: the two as one kernel, as inference engines run them between blocks.
template <bool kResidual>
struct RmsNorm : RowOperator {
  static constexpr std::size_t kWeight = kResidual ? 2 : 1, kSum = kResidual ? 3 : 0, kY = kResidual ? 4 : 2;

  static std::vector<TensorSpec> tensors(const Problem& problem) {
    const std::int64_t width = problem.at("hidden"), values = row_count(problem) * width;
    const TensorSpec x{"x", Role::kIn, problem.type, values}, weight{"weight", Role::kIn, problem.type, width},
        y{"y", Role::kOut, problem.type, values};
    if (!kResidual) return {x, weight, y};
    return {x, {"residual", Role::kIn, problem.type, values}, weight, {"sum", Role::kOut, problem.type, values}, y};
  }

  static void reference(const Problem& problem, std::span<std::vector<double>> t) {
    const auto width = static_cast<std::size_t>(problem.at("hidden"));
    if (kResidual) std::ranges::transform(t[0], t[1], t[kSum].begin(), std::plus());
    const std::vector<double>& normed = t[kSum];
    for (std::size_t begin = 0; begin < normed.size(); begin += width) {
      double squares = 0;
      for (std::size_t i = begin; i < begin + width; ++i) squares += normed[i] * normed[i];
      const double scale = 1 / std::sqrt(squares / static_cast<double>(width) + kRmsNormEps);
      for (std::size_t i = 0; i < width; ++i) t[kY][begin + i] = normed[begin + i] * scale * t[kWeight][i];
    }
  }

  static void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
    const std::int64_t width = problem.at("hidden");
    const float* weight = floats(t[kWeight]);
    each_row(team, row_count(problem), width, [&](std::int64_t row) {
      const float *x = floats(t[0]) + row * width, *residual = floats(t[kResidual ? 1 : 0]) + row * width;
      float *normed = floats(t[kSum]) + row * width, *y = floats(t[kY]) + row * width;
      const float squares = vector_sum(width, [&](std::int64_t i) {
        if (kResidual) normed[i] = x[i] + residual[i];
        return normed[i] * normed[i];
      });
      const float scale = 1 / std::sqrt(squares / static_cast<float>(width) + kRmsNormEps);
      for (std::int64_t i = 0; i < width; ++i) y[i] = normed[i] * scale * weight[i];
    });
  }

  static Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
    return row_call < kResidual ? 5 : 3 > (context, problem, kRmsNormEps);
  }
};

}  // namespace

const Operator kLayernorm = describe<LayerNorm<unchanged<double>, unchanged<float>>>(
    "layernorm", "y = (x - mean) / sqrt(variance + eps) * weight + bias");
const Operator kLayernormGelu =
    describe<LayerNorm<exact_gelu, vector_gelu>>("layernorm_gelu", "y = gelu(layernorm(x)) as one kernel");
const Operator kRmsnorm = describe<RmsNorm<false>>("rmsnorm", "y = x / sqrt(mean of squares + eps) * weight");
const Operator kResidualRmsnorm =
    describe<RmsNorm<true>>("residual_rmsnorm", "sum = x + residual, y = rmsnorm(sum) * weight");

}  // namespace llmprof::bench
