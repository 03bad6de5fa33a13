// y = x + residual: what follows every block of a transformer that is not fused into the product before it.

#include "bench/operator.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {

namespace residual_add {
namespace {

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t values = row_count(problem) * problem.at("hidden");
  return {{.name = "x", .type = problem.type, .elements = values},
          {.name = "residual", .type = problem.type, .elements = values},
          {.name = "y", .role = Role::kOut, .type = problem.type, .elements = values}};
}

model::KernelWork work(const Problem& problem) {
  const auto values = static_cast<double>(row_count(problem) * problem.at("hidden"));
  return model::streaming_work(2 * values, values, static_cast<double>(type_bytes(problem.type)));
}

void reference(const Problem&, std::span<std::vector<double>> tensors) {
  for (std::size_t i = 0; i < tensors[2].size(); ++i) tensors[2][i] = tensors[0][i] + tensors[1][i];
}

void cpu(const Problem& problem, std::span<std::byte* const> tensors, const Team& team) {
  const auto* x = reinterpret_cast<const float*>(tensors[0]);
  const auto* residual = reinterpret_cast<const float*>(tensors[1]);
  auto* y = reinterpret_cast<float*>(tensors[2]);
  team.each(row_count(problem) * problem.at("hidden"), kGrainValues, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) y[i] = x[i] + residual[i];
  });
}

Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
  const std::string kernel = kernel_name("residual_add", problem.type);
  const std::int64_t values = row_count(problem) * problem.at("hidden");
  const cuda::Launch launch = stream_launch(values, problem.type);
  return kernel_call<3>(context, kernel, launch, values);
}

constexpr CudaImplementation kCuda[] = {{"kernel", prepare}};

}  // namespace
}  // namespace residual_add

const Operator kResidualAdd{.name = "residual_add",
                            .summary = "y = x + residual",
                            .axes = kRowAxes,
                            .types = kRowTypes,
                            .check = check_rows,
                            .tensors = residual_add::tensors,
                            .work = residual_add::work,
                            .small = small_rows,
                            .reference = residual_add::reference,
                            .cpu = residual_add::cpu,
                            .cpu_method = "loop",
                            .cuda = residual_add::kCuda};

}  // namespace llmprof::bench
