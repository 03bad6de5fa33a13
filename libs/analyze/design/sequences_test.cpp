#include "analyze/design/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmprof::analyze::design {
namespace {

using testing::HasSubstr;

TEST(Sequences, CountsTokensAndContext) {
  const auto parsed = parse_sequences("8x1@2048,1x512@1k,300");
  ASSERT_TRUE(parsed);
  const std::vector<model::Sequences> expected{{.count = 8, .tokens = 1, .context = 2048},
                                               {.count = 1, .tokens = 512, .context = 1024},
                                               {.count = 1, .tokens = 300, .context = 300}};
  EXPECT_EQ(*parsed, expected);
}

TEST(Sequences, SaysWhatIsWrong) {
  const auto refused = [](std::string_view text) {
    const auto parsed = parse_sequences(text);
    return parsed ? "not refused" : parsed.error().message;
  };
  EXPECT_THAT(refused(""), HasSubstr("''"));
  EXPECT_THAT(refused("8x"), HasSubstr("'8x'"));
  EXPECT_THAT(refused("0x1@5"), HasSubstr("1 at least"));
  EXPECT_THAT(refused("1x8@4"), HasSubstr("includes the new tokens"));
  EXPECT_THAT(refused("1x1@9999999999"), HasSubstr("more than"));
  EXPECT_THAT(refused("8@4x2"), HasSubstr("'8@4x2'"));
}

}  // namespace
}  // namespace llmprof::analyze::design
