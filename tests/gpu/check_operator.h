#pragma once
// Every implementation of an operator against its reference, in each type, for the sizes given. What an implementation
// says it cannot do is passed over, as long as another one can.

#include <gtest/gtest.h>

#include <iostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/check.h"
#include "bench/operator.h"

namespace llmprof::bench {

using Axes = std::vector<std::pair<std::string, std::int64_t>>;

inline void check_problem(cuda::Context& context, const Operator& op, const Problem& problem) {
  bool computed = false;
  for (const CudaImplementation& implementation : op.cuda) {
    const auto call = implementation.prepare(context, problem);
    if (!call) {
      std::cout << "  " << implementation.name << ", " << problem.key() << ": " << call.error().message << "\n";
      EXPECT_EQ(call.error().code, ErrorCode::kUnsupported) << problem.key() << ": " << call.error().message;
      continue;
    }
    for (const std::uint64_t seed : {1, 2}) {  // twice: what a first call leaves in a workspace must not matter
      const auto error = check_on_gpu(op, problem, context, *call, seed);
      ASSERT_TRUE(error) << problem.key() << ": " << error.error().message;
      EXPECT_LE(*error, op.tolerance.value_or(tolerance(problem.type))) << problem.key() << ", " << call->method;
    }
    computed = true;
  }
  EXPECT_TRUE(computed) << problem.key();
}

inline void check_operator(std::string_view name, std::span<const Axes> sizes) {
  const auto context = cuda::Context::open(0);
  ASSERT_TRUE(context) << context.error().message;
  const Operator* op = find_operator(name);
  ASSERT_NE(op, nullptr) << name;
  for (const Axes& axes : sizes) {
    for (const Type type : op->types) {
      const auto problem = make_problem(*op, type, axes);
      ASSERT_TRUE(problem) << problem.error().message;
      check_problem(**context, *op, *problem);
    }
  }
}

}  // namespace llmprof::bench
