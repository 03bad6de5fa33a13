// y = (x - mean) / √(variance + eps) · weight + bias.

#include "bench/ops/norm.h"

namespace llmprof::bench {

namespace {

void layernorm_reference(const Problem& problem, std::span<std::vector<double>> tensors) {
  layernorm::reference(problem, tensors, [](double value) { return value; });
}

void layernorm_cpu(const Problem& problem, std::span<std::byte* const> tensors, const Team& team) {
  layernorm::cpu(problem, tensors, team, [](float value) { return value; });
}

}  // namespace

const Operator kLayernorm{.name = "layernorm",
                          .summary = "y = (x - mean) / sqrt(variance + eps) * weight + bias",
                          .axes = kRowAxes,
                          .types = kRowTypes,
                          .check = check_rows,
                          .tensors = layernorm::tensors,
                          .work = layernorm::work,
                          .small = small_rows,
                          .reference = layernorm_reference,
                          .cpu = layernorm_cpu,
                          .cpu_method = "loop",
                          .cuda = layernorm::kCuda};

}  // namespace llmprof::bench
