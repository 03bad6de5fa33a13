#pragma once
// The same transformers once more, for tests: double precision, one plain loop after another, no cache, no threads, no
// BLAS, and no line shared with the fast code. Written from the definitions, to be read beside them.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "workload/config.h"

namespace llmprof::workload {

// Values of a parameter by its name; matrices are (out, in).
using ParameterLookup = std::function<const float*(const std::string& name)>;

// Logits (T, V) at every position of one sequence.
std::vector<std::vector<double>> reference_logits(const ModelConfig& config, const ParameterLookup& parameter,
                                                  std::span<const int> tokens);

}  // namespace llmprof::workload
