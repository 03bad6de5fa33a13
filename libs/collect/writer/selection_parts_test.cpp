// What the selection of records is told by: lines of the control file, ages of segments, patterns of names.

#include <gtest/gtest.h>

#include <cstring>

#include "collect/writer/glob.h"
#include "collect/writer/output.h"
#include "collect/writer/switches.h"

namespace llmprof::collect {
namespace {

TEST(Switches, LinesOfTheControlFile) {
  const auto parse = [](const char* line, Switch* out) { return parse_switch(line, strlen(line), out); };
  Switch found{};
  ASSERT_TRUE(parse("123456789012345 on", &found));
  EXPECT_TRUE(found.on);
  EXPECT_EQ(found.ts_ns, 123456789012345u);
  ASSERT_TRUE(parse("7 off", &found));
  EXPECT_FALSE(found.on);
  for (const char* bad :
       {"", "on", " on", "7", "7 ", "7on", "7 onx", "7 of", "-7 on", "7  on", "12345678901234567890 on"})
    EXPECT_FALSE(parse(bad, &found)) << bad;
}

TEST(Segments, AreNeededWhileTheNextOneIsYoungAndThereIsRoom) {
  Segments segments;
  segments.begun(0, 0);
  EXPECT_EQ(segments.expired(1000, 50, 100), Segments::kNone);  // the only one
  segments.closed(60);
  segments.begun(1, 100);
  EXPECT_EQ(segments.expired(149, 50, 100), Segments::kNone);  // log 0 holds what is 49 old and less
  EXPECT_EQ(segments.expired(151, 50, 100), 0u);
  segments.closed(60);
  segments.begun(2, 152);
  EXPECT_EQ(segments.expired(153, 50, 100), Segments::kNone);
  segments.closed(60);
  segments.begun(3, 154);
  EXPECT_EQ(segments.expired(155, 50, 100), 1u);  // 120 bytes are too many
  EXPECT_EQ(segments.expired(155, 50, 100), Segments::kNone);
}

TEST(Glob, StarsStandForAnyText) {
  const auto match = [](const char* pattern, const char* text) { return matches(pattern, strlen(pattern), text); };
  EXPECT_TRUE(match("decode", "decode"));
  EXPECT_FALSE(match("decode", "decode_1"));
  EXPECT_FALSE(match("decode", "decod"));
  EXPECT_TRUE(match("decode*", "decode"));
  EXPECT_TRUE(match("execute_*_generation_*", "execute_context_1(5)_generation_0(0)"));
  EXPECT_FALSE(match("execute_*_generation_*", "execute_context"));
  EXPECT_TRUE(match("a*b*c", "axxbyybzzc"));
  EXPECT_FALSE(match("a*b*c", "axxbyybzz"));
  EXPECT_FALSE(match("", "x"));
  EXPECT_TRUE(match("*", ""));
}

}  // namespace
}  // namespace llmprof::collect
