#include "importers/text.h"

#include <gtest/gtest.h>

namespace llmprof::importers {
namespace {

TEST(Text, KeepsWhatIsUtf8) {
  for (const std::string_view good : {"", "plain", "eight888 and more", "é", "€", "😀", "aaaaaaa\x7f"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
    EXPECT_EQ(to_utf8(good), good);
  }
}

TEST(Text, ReplacesEveryByteThatIsNot) {
  EXPECT_EQ(to_utf8("a\xFFz"), "a\uFFFDz");
  EXPECT_EQ(to_utf8("\xC3"), "\uFFFD");                      // cut in the middle of a character
  EXPECT_EQ(to_utf8("\xE2\x82"), "\uFFFD\uFFFD");            // the same, two bytes
  EXPECT_EQ(to_utf8("\xC0\x80"), "\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(to_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(to_utf8(std::string_view("a\0b", 3)), "a\uFFFDb");
  EXPECT_FALSE(is_utf8(std::string_view("01234567\0", 9)));
  EXPECT_FALSE(
      is_utf8(std::string_view("0123\0"
                               "4567",
                               9)));
}

}  // namespace
}  // namespace llmprof::importers
