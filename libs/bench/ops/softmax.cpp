// y = softmax(x) over each row: the scores of attention where it is not fused, and the probabilities of a vocabulary.

#include <algorithm>
#include <cmath>

#include "bench/ops/cpu_math.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {
namespace {

struct Softmax : RowOperator {
  static constexpr AxisSpec kAxes[] = {{"batch", "1", 1, "sequences"},
                                       {"seq", "1,128,2048", 1, "rows per sequence"},
                                       {"hidden", "4096,128256", 1, "values per row"}};

  static std::vector<TensorSpec> tensors(const Problem& problem) {
    const std::int64_t values = row_count(problem) * problem.at("hidden");
    return {{"x",
             Role::kIn,
             problem.type,
             values,
             {.scale = 4}},  // as scores and logits spread; of even ones float16 holds only the last bits

            {"y", Role::kOut, problem.type, values}};
  }

  static void reference(const Problem& problem, std::span<std::vector<double>> t) {
    const auto width = static_cast<std::size_t>(problem.at("hidden"));
    for (std::size_t begin = 0; begin < t[0].size(); begin += width) {
      const double* x = t[0].data() + begin;
      double* y = t[1].data() + begin;
      const double largest = *std::max_element(x, x + width);
      double sum = 0;
      for (std::size_t i = 0; i < width; ++i) sum += y[i] = std::exp(x[i] - largest);
      for (std::size_t i = 0; i < width; ++i) y[i] /= sum;
    }
  }

  static void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
    const std::int64_t width = problem.at("hidden");
    each_row(team, row_count(problem), width, [&](std::int64_t row) {
      const float* x = floats(t[0]) + row * width;
      float* y = floats(t[1]) + row * width;
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
  static constexpr std::int64_t kCluster = 8;

  static bool few(const cuda::Context& context, std::int64_t rows) {
    return rows * kCluster <= context.properties().multiprocessors;
  }

  static bool shares_rows(const cuda::Context& context, std::int64_t rows, std::int64_t row_bytes) {
    if (context.properties().major < 9) return false;
    return row_bytes > 128 * 1024 || (row_bytes > 16 * 1024 && few(context, rows));
  }

  static Result<CudaCall> prepare_shared(cuda::Context& context, const Problem& problem) {
    const std::string kernel = kernel_name("softmax_cluster", problem.type);
    const auto width = static_cast<std::int32_t>(problem.at("hidden"));
    const std::int64_t rows = row_count(problem);
    const cuda::Launch launch{.grid_x = rows * kCluster, .block_x = few(context, rows) ? 512 : 256};
    return kernel_call<2>(context, kernel, launch, width);
  }

  static Result<CudaCall> prepare(cuda::Context& context, const Problem& problem) {
    const std::string kernel = kernel_name("softmax", problem.type);
    const std::int64_t rows = row_count(problem);
    const auto width = static_cast<std::int32_t>(problem.at("hidden"));
    if (shares_rows(context, rows, width * type_bytes(problem.type))) return prepare_shared(context, problem);
    const cuda::Launch launch = row_launch(context, rows, width, problem.type);
    return kernel_call<2>(context, kernel, launch, rows, width);
  }
};

}  // namespace

const Operator kSoftmax = describe<Softmax>("softmax", "y = exp(x - max) / sum of exp(x - max)");

}  // namespace llmprof::bench
