// y = gelu(layernorm(x)), exact: both with one pass through memory.

#include <cmath>
#include <numbers>

#include "bench/ops/cpu_math.h"
#include "bench/ops/norm.h"

namespace llmprof::bench {

namespace {

void layernorm_gelu_reference(const Problem& problem, std::span<std::vector<double>> tensors) {
  layernorm::reference(problem, tensors, [](double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); });
}

void layernorm_gelu_cpu(const Problem& problem, std::span<std::byte* const> tensors, const Team& team) {
  layernorm::cpu(problem, tensors, team, [](float value) { return vector_gelu(value); });
}

}  // namespace

const Operator kLayernormGelu{.name = "layernorm_gelu",
                              .summary = "y = gelu(layernorm(x)) as one kernel",
                              .axes = kRowAxes,
                              .types = kRowTypes,
                              .check = check_rows,
                              .tensors = layernorm::tensors,
                              .work = layernorm::work,
                              .small = small_rows,
                              .reference = layernorm_gelu_reference,
                              .cpu = layernorm_gelu_cpu,
                              .cpu_method = "loop",
                              .cuda = layernorm::kCuda};

}  // namespace llmprof::bench
