// y = gelu(x) between the two products of a feed-forward layer: exact, x Φ(x), and the approximation by tanh that many
// models were trained with. Two operators, because a model has the one or the other.

#include <cmath>
#include <numbers>

#include "bench/operator.h"
#include "bench/ops/cpu_math.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {

namespace gelu {
namespace {

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t values = row_count(problem) * problem.at("hidden");
  return {{.name = "x", .type = problem.type, .elements = values},
          {.name = "y", .role = Role::kOut, .type = problem.type, .elements = values}};
}

model::KernelWork work(const Problem& problem) {
  const auto values = static_cast<double>(row_count(problem) * problem.at("hidden"));
  return model::streaming_work(values, values, static_cast<double>(type_bytes(problem.type)));
}

void reference(const Problem&, std::span<std::vector<double>> tensors) {
  for (std::size_t i = 0; i < tensors[1].size(); ++i) {
    const double x = tensors[0][i];
    tensors[1][i] = 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
  }
}

void reference_tanh(const Problem&, std::span<std::vector<double>> tensors) {
  for (std::size_t i = 0; i < tensors[1].size(); ++i) {
    const double x = tensors[0][i];
    tensors[1][i] = 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  }
}

template <float (*kActivation)(float)>
void cpu(const Problem& problem, std::span<std::byte* const> tensors, const Team& team) {
  const auto* x = reinterpret_cast<const float*>(tensors[0]);
  auto* y = reinterpret_cast<float*>(tensors[1]);
  team.each(row_count(problem) * problem.at("hidden"), kGrainValues, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) y[i] = kActivation(x[i]);
  });
}

Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
  const std::string kernel = kernel_name(problem.op, problem.type);
  const std::int64_t values = row_count(problem) * problem.at("hidden");
  const cuda::Launch launch = stream_launch(values, problem.type);
  return kernel_call<2>(context, kernel, launch, values);
}

constexpr CudaImplementation kCuda[] = {{"kernel", prepare}};

}  // namespace
}  // namespace gelu

const Operator kGelu{.name = "gelu",
                     .summary = "y = x / 2 * (1 + erf(x / sqrt(2)))",
                     .axes = kRowAxes,
                     .types = kRowTypes,
                     .check = check_rows,
                     .tensors = gelu::tensors,
                     .work = gelu::work,
                     .small = small_rows,
                     .reference = gelu::reference,
                     .cpu = gelu::cpu<vector_gelu>,
                     .cpu_method = "loop",
                     .cuda = gelu::kCuda};

const Operator kGeluTanh{.name = "gelu_tanh",
                         .summary = "y = gelu(x) by its approximation with tanh",
                         .axes = kRowAxes,
                         .types = kRowTypes,
                         .check = check_rows,
                         .tensors = gelu::tensors,
                         .work = gelu::work,
                         .small = small_rows,
                         .reference = gelu::reference_tanh,
                         .cpu = gelu::cpu<vector_gelu_tanh>,
                         .cpu_method = "loop",
                         .cuda = gelu::kCuda};

}  // namespace llmprof::bench
