#include "record/control/window_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmprof::record {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(Durations, HaveAUnit) {
  EXPECT_EQ(*parse_duration("500ms"), kSecond / 2);
  EXPECT_EQ(*parse_duration("10s"), 10 * kSecond);
  EXPECT_EQ(*parse_duration("1.5m"), 90 * kSecond);
  EXPECT_EQ(*parse_duration("1h"), 3600 * kSecond);
  EXPECT_EQ(*parse_moment("0s"), 0);
  EXPECT_EQ(*parse_moment("250us"), 250'000);
  EXPECT_FALSE(parse_moment("-1s") || parse_moment("5") || parse_moment(""));
  for (const char* bad : {"", "s", "10", "-1s", "0s", "10 s", "10d", "nan", "1e30h", "10ss", "0.0001ms"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST(StepSpans, AreHalfOpen) {
  const auto both = parse_steps("10:20");
  EXPECT_EQ(both->first, 10);
  EXPECT_EQ(both->end, 20);
  EXPECT_EQ(parse_steps("10:")->end, std::nullopt);
  EXPECT_EQ(parse_steps(":20")->first, std::nullopt);
  for (const char* bad : {"", ":", "5", "5:5", "6:5", ":0", "a:b", "-1:2", "1:2:3", "1 :2"})
    EXPECT_FALSE(parse_steps(bad)) << bad;
}

TEST(WindowOptions, BecomeAbsoluteTimes) {
  EXPECT_THAT(window_variables({}, 7 * kSecond), ElementsAre());
  EXPECT_THAT(
      window_variables({.delay_ns = kSecond, .duration_ns = 2 * kSecond}, 7 * kSecond),
      ElementsAre(Pair("LLMPROF_WINDOW_FROM_NS", "8000000000"), Pair("LLMPROF_WINDOW_UNTIL_NS", "10000000000")));
  EXPECT_THAT(window_variables({.duration_ns = kSecond, .start_range = "decode*"}, 7 * kSecond),
              ElementsAre(Pair("LLMPROF_WINDOW_RANGE", "decode*"), Pair("LLMPROF_WINDOW_LASTS_NS", "1000000000")));
  EXPECT_THAT(window_variables({.steps = StepSpan{2, 4}, .step_names = {"a", "b*"}, .plain_step_names = {"c"}}, 0),
              ElementsAre(Pair("LLMPROF_STEP_PATTERNS", "@step\na\nb*\n!c"), Pair("LLMPROF_FIRST_STEP", "2"),
                          Pair("LLMPROF_END_STEP", "4")));
  EXPECT_THAT(window_variables({.control = "/tmp/s"}, 0), ElementsAre(Pair("LLMPROF_CONTROL", "1")));
  EXPECT_THAT(window_variables({.profiler_api = true}, 0), ElementsAre(Pair("LLMPROF_PROFILER_API", "1")));
  // 60 s in 8 logs of 7.5 s.
  EXPECT_THAT(window_variables({.last_ns = 60 * kSecond}, 0),
              ElementsAre(Pair("LLMPROF_KEEP_MS", "60000"), Pair("LLMPROF_SEGMENT_MS", "7500")));
}

TEST(WindowOptions, AreSaidInWords) {
  EXPECT_EQ(describe(WindowOptions{}), "");
  EXPECT_EQ(describe(WindowOptions{.last_ns = 60 * kSecond}), "the last 60.0 s");
  EXPECT_EQ(describe(WindowOptions{.delay_ns = 10 * kSecond, .duration_ns = 30 * kSecond}),
            "30.0 s from 10.0 s after the start on");
  EXPECT_EQ(describe(WindowOptions{.duration_ns = 30 * kSecond}), "30.0 s from the start on");
  EXPECT_EQ(describe(WindowOptions{.delay_ns = 10 * kSecond}), "from 10.0 s after the start on");
  EXPECT_EQ(describe(WindowOptions{.delay_ns = kSecond, .start_range = "x"}),
            "from the first range \"x\" of each process on, not before 1.00 s after the start");
  EXPECT_EQ(describe(WindowOptions{.steps = StepSpan{2, 5}}), "steps 2 to 4 of each process");
  EXPECT_EQ(describe(WindowOptions{.steps = StepSpan{{}, 5}}), "up to the end of step 4 of each process");
}

TEST(WindowOptions, ContradictionsAreRefused) {
  EXPECT_TRUE(check(WindowOptions{.control = "/tmp/s", .start_stopped = true}));
  EXPECT_FALSE(check(WindowOptions{.start_stopped = true}));
  EXPECT_FALSE(check(WindowOptions{.control = "/tmp/s", .profiler_api = true}));
  EXPECT_FALSE(check(WindowOptions{.last_ns = kSecond, .control = "/tmp/s"}));
  EXPECT_FALSE(check(WindowOptions{.delay_ns = kSecond, .profiler_api = true}));
  EXPECT_TRUE(check(WindowOptions{}));
  EXPECT_TRUE(check(WindowOptions{.delay_ns = 1, .duration_ns = 1, .start_range = "x"}));
  EXPECT_FALSE(check(WindowOptions{.delay_ns = 1, .last_ns = 1}));
  EXPECT_FALSE(check(WindowOptions{.steps = StepSpan{1, 2}, .last_ns = 1}));
  EXPECT_FALSE(check(WindowOptions{.delay_ns = 1, .steps = StepSpan{1, 2}}));
  EXPECT_FALSE(check(WindowOptions{.start_range = std::string(3000, 'x')}));
}

}  // namespace
}  // namespace llmprof::record
