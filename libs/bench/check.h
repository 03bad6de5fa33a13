#pragma once
// Whether an implementation computes what it should: random inputs that the type can hold, outputs poisoned, then the
// distance to the reference.

#include <cstdint>
#include <span>
#include <vector>

#include "bench/operator.h"

namespace llmprof::bench {

// Random values of a tensor as its type holds them. The same seed gives the same values.
std::vector<double> random_values(const TensorSpec& spec, std::uint64_t seed);

// ‖result - reference‖ / ‖reference‖ over all outputs, the worst of them; infinite when a result is not finite where
// the reference is.
double relative_error(std::span<const double> result, std::span<const double> reference);

// Of `problem` as it is, on this machine's CPU.
double check_on_cpu(const Operator& op, const Problem& problem, const Team& team, std::uint64_t seed);
// Of `problem` as it is, on the GPU, with a call that was prepared for it.
Result<double> check_on_gpu(const Operator& op, const Problem& problem, cuda::Context& context, const CudaCall& call,
                            std::uint64_t seed);

}  // namespace llmprof::bench
