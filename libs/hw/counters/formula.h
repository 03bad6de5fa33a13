#pragma once
// Arithmetic over metrics of a chip: numbers, names such as "sm__warps_active.avg.pct_of_peak_sustained_active",
// + - * / and parentheses. Read once into steps, evaluated many times.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace llmprof::hw::counters {

using Lookup = std::function<std::optional<double>(std::string_view metric)>;

struct Expression {
  enum class Step : std::uint8_t { kNumber, kMetric, kAdd, kSubtract, kMultiply, kDivide, kNegate };
  struct Instruction {
    Step step = Step::kNumber;
    double number = 0;
    std::size_t metric = 0;  // index into `metrics`
  };
  std::vector<Instruction> instructions;  // operands before their operator
  std::vector<std::string> metrics;       // each once, as they first appear
};

Result<Expression> parse_formula(std::string_view text);

// Nothing where a metric is missing or not finite, or something is divided by zero.
std::optional<double> evaluate(const Expression& expression, const Lookup& lookup);

}  // namespace llmprof::hw::counters
