// y = softmax(x) over each row: the scores of attention where it is not fused, and the probabilities of a vocabulary.

#include <algorithm>
#include <cmath>

#include "bench/operator.h"
#include "bench/ops/cpu_math.h"
#include "bench/ops/cpu_sum.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {

namespace softmax {
namespace {

constexpr AxisSpec kAxes[] = {{"batch", "1", 1, "sequences"},
                              {"seq", "1,128,2048", 1, "rows per sequence"},
                              {"hidden", "4096,128256", 1, "values per row"}};

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t values = row_count(problem) * problem.at("hidden");
  return {{.name = "x",
           .type = problem.type,
           .elements = values,
           .fill = {.scale = 4}},  // as scores and logits spread; of even ones float16 holds only the last bits

          {.name = "y", .role = Role::kOut, .type = problem.type, .elements = values}};
}

model::KernelWork work(const Problem& problem) {
  const auto values = static_cast<double>(row_count(problem) * problem.at("hidden"));
  return model::streaming_work(values, values, static_cast<double>(type_bytes(problem.type)));
}

void reference(const Problem& problem, std::span<std::vector<double>> tensors) {
  const auto width = static_cast<std::size_t>(problem.at("hidden"));
  for (std::size_t begin = 0; begin < tensors[0].size(); begin += width) {
    const double* x = tensors[0].data() + begin;
    double* y = tensors[1].data() + begin;
    const double largest = *std::max_element(x, x + width);
    double sum = 0;
    for (std::size_t i = 0; i < width; ++i) sum += y[i] = std::exp(x[i] - largest);
    for (std::size_t i = 0; i < width; ++i) y[i] /= sum;
  }
}

void cpu(const Problem& problem, std::span<std::byte* const> tensors, const Team& team) {
  const std::int64_t width = problem.at("hidden");
  each_row(team, row_count(problem), width, [&](std::int64_t row) {
    const auto* x = reinterpret_cast<const float*>(tensors[0]) + row * width;
    auto* y = reinterpret_cast<float*>(tensors[1]) + row * width;
    float largest = x[0];
#pragma omp simd reduction(max : largest)
    for (std::int64_t i = 0; i < width; ++i) largest = std::max(largest, x[i]);
    const float scale = 1 / vector_sum(width, [&](std::int64_t i) { return y[i] = vector_exp(x[i] - largest); });
    for (std::int64_t i = 0; i < width; ++i) y[i] *= scale;
  });
}

// Eight blocks per row, where there are clusters of blocks: for rows far beyond one block's registers, and for so few
// long ones that most multiprocessors would have nothing to do. The latter keep their parts in registers, which takes
// more threads; many rows go faster with smaller blocks, more of them at a time.
constexpr std::int64_t kCluster = 8;

bool few(const cuda::Context& context, std::int64_t rows) {
  return rows * kCluster <= context.properties().multiprocessors;
}

bool shares_rows(const cuda::Context& context, std::int64_t rows, std::int64_t row_bytes) {
  if (context.properties().major < 9) return false;
  return row_bytes > 128 * 1024 || (row_bytes > 16 * 1024 && few(context, rows));
}

Result<CudaCall> prepare_shared(cuda::Context& context, const Problem& problem) {
  const std::string kernel = kernel_name("softmax_cluster", problem.type);
  const auto width = static_cast<std::int32_t>(problem.at("hidden"));
  const std::int64_t rows = row_count(problem);
  const cuda::Launch launch{.grid_x = rows * kCluster, .block_x = few(context, rows) ? 512 : 256};
  return kernel_call<2>(context, kernel, launch, width);
}

Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
  const std::string kernel = kernel_name("softmax", problem.type);
  const std::int64_t rows = row_count(problem);
  const auto width = static_cast<std::int32_t>(problem.at("hidden"));
  if (shares_rows(context, rows, width * type_bytes(problem.type))) return prepare_shared(context, problem);
  const cuda::Launch launch = row_launch(context, rows, width, problem.type);
  return kernel_call<2>(context, kernel, launch, rows, width);
}

constexpr CudaImplementation kCuda[] = {{"kernel", prepare}};

}  // namespace
}  // namespace softmax

const Operator kSoftmax{.name = "softmax",
                        .summary = "y = exp(x - max) / sum of exp(x - max)",
                        .axes = softmax::kAxes,
                        .types = kRowTypes,
                        .check = check_rows,
                        .tensors = softmax::tensors,
                        .work = softmax::work,
                        .small = small_rows,
                        .reference = softmax::reference,
                        .cpu = softmax::cpu,
                        .cpu_method = "loop",
                        .cuda = softmax::kCuda};

}  // namespace llmprof::bench
