#include "trace/strings.h"

#include <gtest/gtest.h>

namespace llmprof::trace {
namespace {

TEST(Strings, EachTextOnce) {
  Strings strings;
  const Name gemm = strings.intern("gemm");
  EXPECT_NE(gemm.id, 0u);
  EXPECT_EQ(strings.intern("gemm"), gemm);
  EXPECT_NE(strings.intern("gemv"), gemm);
  EXPECT_EQ(strings.text(gemm), "gemm");
  EXPECT_EQ(strings.size(), 2u);
}

TEST(Strings, EmptyIsNotNull) {
  Strings strings;
  EXPECT_NE(strings.intern("").id, 0u);
  EXPECT_EQ(strings.text(Name{}), "");
}

TEST(Strings, ViewsSurviveGrowth) {
  Strings strings;
  const std::string_view first = strings.text(strings.intern("first"));
  for (int i = 0; i < 10000; ++i) strings.intern(std::to_string(i));
  EXPECT_EQ(first, "first");
  EXPECT_EQ(strings.text(strings.intern("9999")), "9999");
}

TEST(Strings, BadBytesBecomeVisible) {
  Strings strings;
  const Name name = strings.intern(
      "a\xff"
      "b");
  EXPECT_EQ(strings.text(name), "a\\xffb");
  EXPECT_EQ(strings.intern("a\xff"
                           "b"),
            name);
}

TEST(Storable, KeepsValidUtf8) {
  for (const char* text :
       {"plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x92\xa9", "\xf4\x8f\xbf\xbf", "\"quoted\" 'too' \\"}) {
    EXPECT_EQ(storable(text), text);
  }
}

TEST(Storable, WritesTheRestAsHex) {
  EXPECT_EQ(storable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(storable("\xc3"), "\\xc3");                             // cut short
  EXPECT_EQ(storable("\xc0\xaf"), "\\xc0\\xaf");                    // overlong '/'
  EXPECT_EQ(storable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");           // overlong in three bytes
  EXPECT_EQ(storable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(storable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
  EXPECT_EQ(storable("\x80"), "\\x80");
  EXPECT_EQ(storable("\xe2\x82"), "\\xe2\\x82");
}

}  // namespace
}  // namespace llmprof::trace
