#pragma once
// For the tests of operators: one line each for the reference by hand, the work, and CPU against reference.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "bench/check.h"
#include "bench/operator.h"

namespace llmprof::bench {

using Axes = std::vector<std::pair<std::string, std::int64_t>>;

inline Problem problem_of(std::string_view op, Type type, const Axes& axes) {
  const Operator* found = find_operator(op);
  EXPECT_NE(found, nullptr) << op;
  const Result<Problem> problem = make_problem(*found, type, axes);
  EXPECT_TRUE(problem) << (problem ? "" : problem.error().message);
  return *problem;
}

// All tensors after the reference ran on these inputs (in the order of the tensors, outputs left out).
inline std::vector<std::vector<double>> run_reference(std::string_view op, Type type, const Axes& axes,
                                                      const std::vector<std::vector<double>>& inputs) {
  const Problem problem = problem_of(op, type, axes);
  const Operator& found = *find_operator(op);
  std::vector<std::vector<double>> tensors;
  std::size_t next = 0;
  for (const TensorSpec& spec : found.tensors(problem)) {
    tensors.emplace_back(spec.elements);
    if (spec.role == Role::kOut || next == inputs.size()) continue;
    EXPECT_EQ(inputs[next].size(), tensors.back().size()) << spec.name;
    tensors.back() = inputs[next++];
  }
  found.reference(problem, tensors);
  return tensors;
}

inline model::KernelWork work_of(std::string_view op, Type type, const Axes& axes) {
  return find_operator(op)->work(problem_of(op, type, axes));
}

// Relative error of what a CPU computes, on random inputs, against the reference; every output was poisoned before.
inline double cpu_error(std::string_view op, Type type, const Axes& axes) {
  const Team team(2);
  return check_on_cpu(*find_operator(op), problem_of(op, type, axes), team, 1);
}

}  // namespace llmprof::bench
