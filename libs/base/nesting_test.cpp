#include "base/nesting.h"

#include <gtest/gtest.h>

#include "base/numbers.h"

namespace llmprof::base {
namespace {

TEST(Nesting, TheInnermostThatHoldsAllOfItIsTheParent) {
  Nesting<int> nesting;
  EXPECT_EQ(nesting.around(0, 100), nullptr);
  nesting.open(100, 1);
  ASSERT_NE(nesting.around(10, 50), nullptr);
  EXPECT_EQ(nesting.around(10, 50)->item, 1);
  nesting.open(50, 2);
  EXPECT_EQ(nesting.around(20, 60)->item, 1) << "the inner one merely overlaps";
  EXPECT_EQ(nesting.at(20)->item, 2);
  EXPECT_EQ(nesting.around(50, 60)->item, 1) << "what ends where it begins is over";
  EXPECT_EQ(nesting.depth(), 1u);
  EXPECT_EQ(nesting.at(100), nullptr);
}

TEST(Nesting, AThreadBeginsAnew) {
  Nesting<int> nesting;
  nesting.open(100, 1);
  nesting.clear();
  EXPECT_EQ(nesting.at(0), nullptr);
}

TEST(Numbers, OfTheWholeTextOrItsBeginning) {
  EXPECT_EQ(parse_number<int>("12"), 12);
  EXPECT_EQ(parse_number<int>("12 "), std::nullopt);
  EXPECT_EQ(parse_number<int>(""), std::nullopt);
  EXPECT_EQ(parse_number<std::int8_t>("300"), std::nullopt);
  EXPECT_EQ(parse_number<double>("1.5"), 1.5);
  std::string_view rest;
  EXPECT_EQ(leading_number<double>("1.5ms", rest), 1.5);
  EXPECT_EQ(rest, "ms");
  EXPECT_EQ(leading_number<int>("x1"), std::nullopt);
}

}  // namespace
}  // namespace llmprof::base
