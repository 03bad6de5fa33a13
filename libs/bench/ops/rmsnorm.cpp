// y = x / √(mean of squares + eps) · weight: what Llama and its kin do before every block.

#include <cmath>

#include "bench/operator.h"
#include "bench/ops/cpu_sum.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {

namespace rmsnorm {
namespace {

constexpr float kEps = 1e-6f;

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t width = problem.at("hidden"), values = row_count(problem) * width;
  return {{.name = "x", .type = problem.type, .elements = values},
          {.name = "weight", .type = problem.type, .elements = width},
          {.name = "y", .role = Role::kOut, .type = problem.type, .elements = values}};
}

model::KernelWork work(const Problem& problem) {
  const auto width = static_cast<double>(problem.at("hidden")),
             values = static_cast<double>(row_count(problem)) * width;
  return model::streaming_work(values, values, static_cast<double>(type_bytes(problem.type)), width);
}

void reference(const Problem& problem, std::span<std::vector<double>> tensors) {
  const auto width = static_cast<std::size_t>(problem.at("hidden"));
  for (std::size_t begin = 0; begin < tensors[0].size(); begin += width) {
    double squares = 0;
    for (std::size_t i = 0; i < width; ++i) squares += tensors[0][begin + i] * tensors[0][begin + i];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(width) + kEps);
    for (std::size_t i = 0; i < width; ++i) tensors[2][begin + i] = tensors[0][begin + i] * scale * tensors[1][i];
  }
}

void cpu(const Problem& problem, std::span<std::byte* const> tensors, const Team& team) {
  const std::int64_t width = problem.at("hidden");
  const auto* weight = reinterpret_cast<const float*>(tensors[1]);
  each_row(team, row_count(problem), width, [&](std::int64_t row) {
    const auto* x = reinterpret_cast<const float*>(tensors[0]) + row * width;
    auto* y = reinterpret_cast<float*>(tensors[2]) + row * width;
    const float squares = vector_sum(width, [&](std::int64_t i) { return x[i] * x[i]; });
    const float scale = 1 / std::sqrt(squares / static_cast<float>(width) + kEps);
    for (std::int64_t i = 0; i < width; ++i) y[i] = x[i] * scale * weight[i];
  });
}

Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
  const std::string kernel = kernel_name("rmsnorm", problem.type);
  const std::int64_t rows = row_count(problem);
  const auto width = static_cast<std::int32_t>(problem.at("hidden"));
  const cuda::Launch launch = row_launch(context, rows, width, problem.type);
  return kernel_call<3>(context, kernel, launch, rows, width, kEps);
}

constexpr CudaImplementation kCuda[] = {{"kernel", prepare}};

}  // namespace
}  // namespace rmsnorm

const Operator kRmsnorm{.name = "rmsnorm",
                        .summary = "y = x / sqrt(mean of squares + eps) * weight",
                        .axes = kRowAxes,
                        .types = kRowTypes,
                        .check = check_rows,
                        .tensors = rmsnorm::tensors,
                        .work = rmsnorm::work,
                        .small = small_rows,
                        .reference = rmsnorm::reference,
                        .cpu = rmsnorm::cpu,
                        .cpu_method = "loop",
                        .cuda = rmsnorm::kCuda};

}  // namespace llmprof::bench
