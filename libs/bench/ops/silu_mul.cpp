// y = silu(gate) · up between the products of a gated feed-forward layer. A row holds gate, then up: engines compute
// both by one product.

#include <cmath>

#include "bench/operator.h"
#include "bench/ops/cpu_math.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {

namespace silu_mul {
namespace {

constexpr AxisSpec kAxes[] = {{"batch", "1", 1, "sequences"},
                              {"seq", "1,128,2048", 1, "tokens per sequence"},
                              {"intermediate", "14336", 1, "values per token of the result: half of the input's"}};

Result<void> check(const Problem& problem) { return check_sizes(problem, "intermediate"); }

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t values = row_count(problem) * problem.at("intermediate");
  return {{.name = "gate_up", .type = problem.type, .elements = 2 * values},
          {.name = "y", .role = Role::kOut, .type = problem.type, .elements = values}};
}

model::KernelWork work(const Problem& problem) {
  const auto values = static_cast<double>(row_count(problem) * problem.at("intermediate"));
  return model::streaming_work(2 * values, values, static_cast<double>(type_bytes(problem.type)));
}

void reference(const Problem& problem, std::span<std::vector<double>> tensors) {
  const auto width = static_cast<std::size_t>(problem.at("intermediate"));
  for (std::size_t i = 0; i < tensors[1].size(); ++i) {
    const std::size_t at = i / width * 2 * width + i % width;
    const double gate = tensors[0][at], up = tensors[0][at + width];
    tensors[1][i] = gate / (1 + std::exp(-gate)) * up;
  }
}

void cpu(const Problem& problem, std::span<std::byte* const> tensors, const Team& team) {
  const std::int64_t width = problem.at("intermediate");
  each_row(team, row_count(problem), width, [&](std::int64_t row) {
    const auto* gate = reinterpret_cast<const float*>(tensors[0]) + row * 2 * width;
    const auto* up = gate + width;
    auto* y = reinterpret_cast<float*>(tensors[1]) + row * width;
    for (std::int64_t i = 0; i < width; ++i) y[i] = vector_silu(gate[i]) * up[i];
  });
}

Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
  const std::string kernel = kernel_name("silu_mul", problem.type);
  const std::int64_t width = problem.at("intermediate"), bytes = type_bytes(problem.type);
  // Four accesses per thread, where that still gives every multiprocessor its share.
  const std::int64_t accesses = row_count(problem) * width * bytes / 16;
  const std::int32_t unroll = accesses >= 8 * 256 * context.properties().multiprocessors ? 4 : 1;
  const std::int64_t per_block = 256 * 16 / bytes * unroll, parts = (width + per_block - 1) / per_block;
  return kernel_call<2>(context, kernel, {.grid_x = row_count(problem) * parts, .block_x = 256}, width,
                        static_cast<std::int32_t>(parts), unroll);
}

constexpr CudaImplementation kCuda[] = {{"kernel", prepare}};

}  // namespace
}  // namespace silu_mul

const Operator kSiluMul{.name = "silu_mul",
                        .summary = "y = silu(gate) * up",
                        .axes = silu_mul::kAxes,
                        .types = kRowTypes,
                        .check = silu_mul::check,
                        .tensors = silu_mul::tensors,
                        .work = silu_mul::work,
                        .small = small_rows,
                        .reference = silu_mul::reference,
                        .cpu = silu_mul::cpu,
                        .cpu_method = "loop",
                        .cuda = silu_mul::kCuda};

}  // namespace llmprof::bench
