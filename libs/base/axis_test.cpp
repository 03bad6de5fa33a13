#include "base/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmprof::base {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::int64_t> values(std::string_view text) {
  const Result<std::vector<std::int64_t>> result = parse_axis_values(text);
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return result ? *result : std::vector<std::int64_t>{};
}

std::string refused(std::string_view text) {
  const Result<std::vector<std::int64_t>> result = parse_axis_values(text);
  return result ? "not refused" : result.error().message;
}

TEST(Axis, ListsRangesAndSuffixes) {
  EXPECT_THAT(values("1,2,4"), ElementsAre(1, 2, 4));
  EXPECT_THAT(values("128..1024:x2"), ElementsAre(128, 256, 512, 1024));
  EXPECT_THAT(values("0..30:+10"), ElementsAre(0, 10, 20, 30));
  EXPECT_THAT(values("3..5"), ElementsAre(3, 4, 5));
  EXPECT_THAT(values("1k..4k:x2"), ElementsAre(1024, 2048, 4096));
  EXPECT_THAT(values("1M"), ElementsAre(1048576));
  EXPECT_THAT(values("0..2k:+1k"), ElementsAre(0, 1024, 2048));
}

TEST(Axis, MixesListsAndRangesInTheirOrder) { EXPECT_THAT(values("7,1..4:x2,3"), ElementsAre(7, 1, 2, 4, 3)); }

TEST(Axis, LeavesOutAnEndThatTheStepsMiss) { EXPECT_THAT(values("1..100:x3"), ElementsAre(1, 3, 9, 27, 81)); }

TEST(Axis, SaysWhatIsWrong) {
  EXPECT_THAT(refused(""), HasSubstr("'' is not a whole number"));
  EXPECT_THAT(refused("1,,2"), HasSubstr("'' is not a whole number"));
  EXPECT_THAT(refused("-1"), HasSubstr("'-1'"));
  EXPECT_THAT(refused("1.5"), HasSubstr("'1.5'"));
  EXPECT_THAT(refused("4q"), HasSubstr("'4q'"));
  EXPECT_THAT(refused("8..4"), HasSubstr("ends before it begins"));
  EXPECT_THAT(refused("1..8:x1"), HasSubstr("never ends"));
  EXPECT_THAT(refused("1..8:+0"), HasSubstr("never ends"));
  EXPECT_THAT(refused("0..8:x2"), HasSubstr("multiplies 0"));
  EXPECT_THAT(refused("1..8:2"), HasSubstr("neither xN nor +N"));
  EXPECT_THAT(refused("1:x2..8"), HasSubstr("is not a range"));
}

TEST(Axis, NeverOverflowsOrGrowsWithoutBound) {
  EXPECT_THAT(values("4611686018427387904..9223372036854775807:x2"), ElementsAre(4611686018427387904));
  EXPECT_THAT(values("9223372036854775806..9223372036854775807"),
              ElementsAre(9223372036854775806, 9223372036854775807));
  EXPECT_THAT(refused("0..9223372036854775807"), HasSubstr("more than 100000 values"));
  EXPECT_THAT(refused("9223372036854775807k"), HasSubstr("whole number"));
  EXPECT_THAT(refused("99999999999999999999"), HasSubstr("whole number"));
}

TEST(Axis, HasAName) {
  const Result<Axis> axis = parse_axis("context=1k,2k");
  ASSERT_TRUE(axis);
  EXPECT_EQ(axis->name, "context");
  EXPECT_THAT(axis->values, ElementsAre(1024, 2048));
  EXPECT_FALSE(parse_axis("1,2,4"));
  EXPECT_FALSE(parse_axis("=1"));
}

TEST(Axis, SeveralStandBesideEachOther) {
  const Result<std::vector<Axis>> axes = parse_axes(" batch=1,2  context=1k ");
  ASSERT_TRUE(axes);
  ASSERT_EQ(axes->size(), 2u);
  EXPECT_EQ((*axes)[1].name, "context");
  EXPECT_THAT(parse_axes("batch=1 batch=2").error().message, HasSubstr("batch is given twice"));
  EXPECT_FALSE(parse_axes("  "));
}

}  // namespace
}  // namespace llmprof::base
