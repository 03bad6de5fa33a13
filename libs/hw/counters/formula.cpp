#include "hw/counters/formula.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

namespace llmprof::hw::counters {
namespace {

using Step = Expression::Step;

constexpr int kDeepest = 32;  // parentheses in each other

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// sum := product (('+'|'-') product)*; product := factor (('*'|'/') factor)*; factor := '-' factor | '(' sum ')' |
// number | name
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Expression> run() {
    LLMPROF_TRY(sum());
    if (peek() != '\0') return wrong("an operator");
    return std::move(expression_);
  }

 private:
  Result<void> sum() {
    LLMPROF_TRY(product());
    for (char sign = peek(); sign == '+' || sign == '-'; sign = peek()) {
      ++at_;
      LLMPROF_TRY(product());
      add(sign == '+' ? Step::kAdd : Step::kSubtract);
    }
    return {};
  }

  Result<void> product() {
    LLMPROF_TRY(factor());
    for (char sign = peek(); sign == '*' || sign == '/'; sign = peek()) {
      ++at_;
      LLMPROF_TRY(factor());
      add(sign == '*' ? Step::kMultiply : Step::kDivide);
    }
    return {};
  }

  Result<void> factor() {
    if (++depth_ > kDeepest) return wrong("fewer parentheses");
    const Result<void> result = simple_factor();
    --depth_;
    return result;
  }

  Result<void> simple_factor() {
    const char first = peek();
    if (first == '-') {
      ++at_;
      LLMPROF_TRY(factor());
      add(Step::kNegate);
      return {};
    }
    if (first == '(') {
      ++at_;
      LLMPROF_TRY(sum());
      if (peek() != ')') return wrong("')'");
      ++at_;
      return {};
    }
    if (is_digit(first)) return number();
    if (is_letter(first)) return name();
    return wrong("a number, a metric or '('");
  }

  Result<void> number() {
    double value = 0;
    const char* const begin = text_.data() + at_;
    const auto read = std::from_chars(begin, text_.data() + text_.size(), value);
    if (read.ec != std::errc()) return wrong("a number");
    at_ += static_cast<std::size_t>(read.ptr - begin);
    expression_.instructions.push_back({Step::kNumber, value, 0});
    return {};
  }

  Result<void> name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.')) ++at_;
    const std::string_view metric = text_.substr(begin, at_ - begin);
    auto& metrics = expression_.metrics;
    const auto found = std::find(metrics.begin(), metrics.end(), metric);
    const auto index = static_cast<std::size_t>(std::distance(metrics.begin(), found));
    if (found == metrics.end()) metrics.emplace_back(metric);
    expression_.instructions.push_back({Step::kMetric, 0, index});
    return {};
  }

  // The next character that is no space, without taking it; '\0' at the end.
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  void add(Step step) { expression_.instructions.push_back({step, 0, 0}); }

  Error wrong(std::string_view expected) const {
    return {ErrorCode::kCorruptInput,
            fmt::format("formula `{}`: {} expected at character {}", text_, expected, at_ + 1)};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  Expression expression_;
};

std::optional<double> combine(Step step, double left, double right) {
  switch (step) {
    case Step::kAdd:
      return left + right;
    case Step::kSubtract:
      return left - right;
    case Step::kMultiply:
      return left * right;
    case Step::kDivide:
      return right == 0 ? std::nullopt : std::optional(left / right);
    default:
      return std::nullopt;
  }
}

// One instruction; false: there is no value.
bool apply(const Expression& expression, const Expression::Instruction& instruction, const Lookup& lookup,
           std::vector<double>& stack) {
  std::optional<double> value;
  if (instruction.step == Step::kNumber) {
    value = instruction.number;
  } else if (instruction.step == Step::kMetric) {
    value = lookup(expression.metrics[instruction.metric]);
  } else {
    const double right = stack.back();
    stack.pop_back();
    if (instruction.step == Step::kNegate) {
      value = -right;
    } else {
      value = combine(instruction.step, stack.back(), right);
      stack.pop_back();
    }
  }
  if (!value || !std::isfinite(*value)) return false;
  stack.push_back(*value);
  return true;
}

}  // namespace

Result<Expression> parse_formula(std::string_view text) { return Parser(text).run(); }

std::optional<double> evaluate(const Expression& expression, const Lookup& lookup) {
  if (expression.instructions.empty()) return std::nullopt;
  std::vector<double> stack;
  for (const Expression::Instruction& instruction : expression.instructions) {
    if (!apply(expression, instruction, lookup, stack)) return std::nullopt;
  }
  return stack.back();
}

}  // namespace llmprof::hw::counters
