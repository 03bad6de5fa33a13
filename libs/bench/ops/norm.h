#pragma once
// LayerNorm, alone and with the activation that follows it: one description for both.

#include <cmath>

#include "bench/operator.h"
#include "bench/ops/cpu_sum.h"
#include "bench/ops/rows.h"

namespace llmprof::bench::layernorm {

inline constexpr float kEps = 1e-5f;

inline std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t width = problem.at("hidden"), values = row_count(problem) * width;
  return {{.name = "x", .type = problem.type, .elements = values},
          {.name = "weight", .type = problem.type, .elements = width},
          {.name = "bias", .type = problem.type, .elements = width},
          {.name = "y", .role = Role::kOut, .type = problem.type, .elements = values}};
}

inline model::KernelWork work(const Problem& problem) {
  const auto width = static_cast<double>(problem.at("hidden")),
             values = static_cast<double>(row_count(problem)) * width;
  return model::streaming_work(values, values, static_cast<double>(type_bytes(problem.type)), 2 * width);
}

template <class Activation>
void reference(const Problem& problem, std::span<std::vector<double>> tensors, Activation activation) {
  const auto width = static_cast<std::size_t>(problem.at("hidden"));
  for (std::size_t begin = 0; begin < tensors[0].size(); begin += width) {
    const double* x = tensors[0].data() + begin;
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < width; ++i) sum += x[i];
    const double mean = sum / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(width) + kEps);
    for (std::size_t i = 0; i < width; ++i) {
      tensors[3][begin + i] = activation((x[i] - mean) * scale * tensors[1][i] + tensors[2][i]);
    }
  }
}

template <class Activation>
void cpu(const Problem& problem, std::span<std::byte* const> tensors, const Team& team, Activation activation) {
  const std::int64_t width = problem.at("hidden");
  const auto* weight = reinterpret_cast<const float*>(tensors[1]);
  const auto* bias = reinterpret_cast<const float*>(tensors[2]);
  each_row(team, row_count(problem), width, [&](std::int64_t row) {
    const auto* x = reinterpret_cast<const float*>(tensors[0]) + row * width;
    auto* y = reinterpret_cast<float*>(tensors[3]) + row * width;
    const float mean = vector_sum(width, [&](std::int64_t i) { return x[i]; }) / static_cast<float>(width);
    const float squares = vector_sum(width, [&](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); });
    const float scale = 1 / std::sqrt(squares / static_cast<float>(width) + kEps);
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) y[i] = activation((x[i] - mean) * scale * weight[i] + bias[i]);
  });
}

inline Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
  const std::string kernel = kernel_name(problem.op, problem.type);
  const std::int64_t rows = row_count(problem);
  const auto width = static_cast<std::int32_t>(problem.at("hidden"));
  const cuda::Launch launch = row_launch(context, rows, width, problem.type);
  return kernel_call<4>(context, kernel, launch, rows, width, kEps);
}

inline constexpr CudaImplementation kCuda[] = {{"kernel", prepare}};

}  // namespace llmprof::bench::layernorm
