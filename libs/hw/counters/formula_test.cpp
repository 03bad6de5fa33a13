#include "hw/counters/formula.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

namespace llmprof::hw::counters {
namespace {

std::optional<double> value_of(std::string_view text, const std::map<std::string, double, std::less<>>& metrics = {}) {
  const Result<Expression> expression = parse_formula(text);
  EXPECT_TRUE(expression) << text;
  if (!expression) return std::nullopt;
  return evaluate(*expression, [&](std::string_view name) -> std::optional<double> {
    const auto found = metrics.find(name);
    return found == metrics.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(Formula, ProductsBindMoreThanSumsAndBothGoFromLeftToRight) {
  EXPECT_EQ(value_of("2 + 3 * 4"), 14);
  EXPECT_EQ(value_of("(2 + 3) * 4"), 20);
  EXPECT_EQ(value_of("10 - 3 - 2"), 5);
  EXPECT_EQ(value_of("24 / 4 / 2"), 3);
  EXPECT_EQ(value_of("-(2 - 5) * 1.5e1"), 45);
}

TEST(Formula, NamesAreThoseOfTheChipWithTheirDots) {
  const auto read = parse_formula("100 * a__b.sum / sm__warps_active.avg.pct_of_peak_sustained_active + a__b.sum");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->metrics, (std::vector<std::string>{"a__b.sum", "sm__warps_active.avg.pct_of_peak_sustained_active"}));
  EXPECT_EQ(value_of("100 * a__b.sum / c2__d.max + a__b.sum", {{"a__b.sum", 3}, {"c2__d.max", 4}}), 78);
}

TEST(Formula, AMissingOrUnknownInputGivesNoValue) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(value_of("a__b.sum + 1"), std::nullopt);
  EXPECT_EQ(value_of("a__b.sum + 1", {{"a__b.sum", kNan}}), std::nullopt);
  EXPECT_EQ(value_of("0 * a__b.sum", {{"a__b.sum", std::numeric_limits<double>::infinity()}}), std::nullopt);
  EXPECT_EQ(value_of("1 / a__b.sum", {{"a__b.sum", 0}}), std::nullopt);
  EXPECT_EQ(value_of("0 / a__b.sum", {{"a__b.sum", 2}}), 0);
}

TEST(Formula, WhatIsNoFormulaIsRefusedAndSaysWhere) {
  for (const char* text : {"", "1 +", "(1", "1)", "a__b.sum c__d.sum", "* 2", "1 $ 2", "()"}) {
    EXPECT_FALSE(parse_formula(text)) << text;
  }
  const auto wrong = parse_formula("1 + $");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("character 5"), std::string::npos) << wrong.error().message;
  EXPECT_FALSE(parse_formula(std::string(1000, '(')));
  EXPECT_FALSE(parse_formula(std::string(1000, '-') + "1"));
}

}  // namespace
}  // namespace llmprof::hw::counters
