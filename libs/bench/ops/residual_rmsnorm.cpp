// sum = x + residual, y = rmsnorm(sum) · weight: the two as one kernel, as inference engines run them between blocks.

#include <cmath>

#include "bench/operator.h"
#include "bench/ops/cpu_sum.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {

namespace residual_rmsnorm {
namespace {

constexpr float kEps = 1e-6f;

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t width = problem.at("hidden"), values = row_count(problem) * width;
  return {{.name = "x", .type = problem.type, .elements = values},
          {.name = "residual", .type = problem.type, .elements = values},
          {.name = "weight", .type = problem.type, .elements = width},
          {.name = "sum", .role = Role::kOut, .type = problem.type, .elements = values},
          {.name = "y", .role = Role::kOut, .type = problem.type, .elements = values}};
}

model::KernelWork work(const Problem& problem) {
  const auto width = static_cast<double>(problem.at("hidden")),
             values = static_cast<double>(row_count(problem)) * width;
  return model::streaming_work(2 * values, 2 * values, static_cast<double>(type_bytes(problem.type)), width);
}

void reference(const Problem& problem, std::span<std::vector<double>> tensors) {
  const auto width = static_cast<std::size_t>(problem.at("hidden"));
  std::vector<double>& sum = tensors[3];
  for (std::size_t begin = 0; begin < sum.size(); begin += width) {
    double squares = 0;
    for (std::size_t i = begin; i < begin + width; ++i) {
      sum[i] = tensors[0][i] + tensors[1][i];
      squares += sum[i] * sum[i];
    }
    const double scale = 1 / std::sqrt(squares / static_cast<double>(width) + kEps);
    for (std::size_t i = 0; i < width; ++i) tensors[4][begin + i] = sum[begin + i] * scale * tensors[2][i];
  }
}

void cpu(const Problem& problem, std::span<std::byte* const> tensors, const Team& team) {
  const std::int64_t width = problem.at("hidden");
  const auto* weight = reinterpret_cast<const float*>(tensors[2]);
  each_row(team, row_count(problem), width, [&](std::int64_t row) {
    const auto* x = reinterpret_cast<const float*>(tensors[0]) + row * width;
    const auto* residual = reinterpret_cast<const float*>(tensors[1]) + row * width;
    auto* sum = reinterpret_cast<float*>(tensors[3]) + row * width;
    auto* y = reinterpret_cast<float*>(tensors[4]) + row * width;
    const float squares = vector_sum(width, [&](std::int64_t i) {
      sum[i] = x[i] + residual[i];
      return sum[i] * sum[i];
    });
    const float scale = 1 / std::sqrt(squares / static_cast<float>(width) + kEps);
    for (std::int64_t i = 0; i < width; ++i) y[i] = sum[i] * scale * weight[i];
  });
}

Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
  const std::string kernel = kernel_name("residual_rmsnorm", problem.type);
  const std::int64_t rows = row_count(problem);
  const auto width = static_cast<std::int32_t>(problem.at("hidden"));
  const cuda::Launch launch = row_launch(context, rows, width, problem.type);
  return kernel_call<5>(context, kernel, launch, rows, width, kEps);
}

constexpr CudaImplementation kCuda[] = {{"kernel", prepare}};

}  // namespace
}  // namespace residual_rmsnorm

const Operator kResidualRmsnorm{.name = "residual_rmsnorm",
                                .summary = "sum = x + residual, y = rmsnorm(sum) * weight",
                                .axes = kRowAxes,
                                .types = kRowTypes,
                                .check = check_rows,
                                .tensors = residual_rmsnorm::tensors,
                                .work = residual_rmsnorm::work,
                                .small = small_rows,
                                .reference = residual_rmsnorm::reference,
                                .cpu = residual_rmsnorm::cpu,
                                .cpu_method = "loop",
                                .cuda = residual_rmsnorm::kCuda};

}  // namespace llmprof::bench
