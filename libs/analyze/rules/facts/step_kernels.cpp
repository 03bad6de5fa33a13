#include "analyze/rules/facts/step_kernels.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "analyze/questions.h"

namespace llmprof::analyze {
namespace {

template <std::size_t N>
bool holds_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.find(word) != text.npos; });
}

}  // namespace

bool is_attention(std::string_view kernel) {
  static constexpr std::array<std::string_view, 8> kWords = {"flash",     "attention",  "sdpa", "fmha",
                                                             "Attention", "paged_attn", "mla_", "BatchDecode"};
  return holds_any(kernel, kWords);
}

bool is_collective(std::string_view kernel) {
  static constexpr std::array<std::string_view, 4> kWords = {"nccl", "rccl", "all_reduce", "cross_device_reduce"};
  return holds_any(kernel, kWords);
}

bool is_product(std::string_view kernel) {
  static constexpr std::array<std::string_view, 6> kWords = {"gemm", "gemv", "nvjet", "cutlass", "Gemm", "splitK"};
  return holds_any(kernel, kWords);
}

bool moves_elements(std::string_view kernel) {
  static constexpr std::array<std::string_view, 20> kWords = {
      "elementwise", "CatArray", "index_",     "indexSelect", "indexCopy",  "copy_kernel",   "reduce_kernel",
      "layer_norm",  "rms_norm", "RMSNorm",    "rmsnorm",     "LayerNorm",  "rotary",        "rope",
      "silu",        "gelu",     "triton_poi", "triton_red",  "triton_per", "scatter_gather"};
  if (is_attention(kernel) || is_collective(kernel) || is_product(kernel)) return false;
  return holds_any(kernel, kWords) && kernel.find("ArgM") == kernel.npos;
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
