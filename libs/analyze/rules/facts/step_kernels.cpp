#include "analyze/rules/facts/step_kernels.h"

#include <algorithm>
#include <tuple>

#include "analyze/passes/kernel_class.h"
#include "analyze/questions.h"

namespace llmprof::analyze {

bool is_attention(std::string_view kernel) { return class_of_kernel(kernel) == KernelClass::kAttention; }
bool is_collective(std::string_view kernel) { return class_of_kernel(kernel) == KernelClass::kCollective; }
bool is_product(std::string_view kernel) { return class_of_kernel(kernel) == KernelClass::kProduct; }

bool moves_elements(std::string_view kernel) {
  using enum KernelClass;
  switch (class_of_kernel(kernel)) {
    case kNorm:
    case kRope:
    case kCacheWrite:
    case kActivation:
    case kEmbedding:
    case kBeforeMean:
    case kMean:
    case kAfterMean:
    case kSum:
    case kMoves:
      return true;
    default:
      return false;
  }
}

Result<StepKernels> read_step_kernels(const trace::Run& run) {
  LLMPROF_LET(trace::Columns columns, ask_columns(run, "sql/step_kernels"));
  StepKernels read;
  const auto& v = columns.values;
  read.kernels.reserve(columns.rows());
  for (std::size_t i = 0; i < columns.rows(); ++i) {
    read.kernels.push_back({.step_id = v[1][i],
                            .device_id = v[2][i],
                            .stream = v[3][i],
                            .begin_ns = v[4][i],
                            .end_ns = v[5][i],
                            .stage = v[0][i],
                            .name = v[6][i],
                            .op = v[7][i],
                            .product = v[8][i] != 0,
                            .estimated = v[9][i] != 0});
    const std::string& stage = columns.names[static_cast<std::size_t>(v[0][i])];
    if (read.of.contains(stage)) continue;
    read.of[stage] = v[11][i];
    read.scale[stage] = static_cast<double>(v[10][i]) / static_cast<double>(v[11][i]);
  }
  read.names = std::move(columns.names);
  std::ranges::sort(read.kernels, {}, [](const StepKernel& kernel) {
    return std::tuple(kernel.step_id, kernel.device_id, kernel.stream, kernel.begin_ns, kernel.end_ns, kernel.name);
  });
  return read;
}

}  // namespace llmprof::analyze
