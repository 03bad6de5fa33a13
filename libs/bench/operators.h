#pragma once
// All operators, in the order of `llmprof bench --list`.

#include <span>
#include <string_view>

#include "base/axis.h"
#include "bench/operator.h"

namespace llmprof::bench {

std::span<const Operator* const> operators();
const Operator* find_operator(std::string_view name);  // nullptr if there is none

// The problem with these axes; those not given take the first value of their fallback. An axis the operator does not
// have, a value under its least, and axes that do not fit each other are errors that name them.
Result<Problem> make_problem(const Operator& op, Type type, std::span<const std::pair<std::string, std::int64_t>> axes);

}  // namespace llmprof::bench
