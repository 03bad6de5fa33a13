#include "analyze/passes/step_time.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace llmprof::analyze {
namespace {

struct Program {
  void step(const char* stage, std::int64_t lasted, std::int64_t tokens = 1) {
    Step step{.begin_ns = now, .end_ns = now + lasted, .thread_id = 1, .stage = strings.intern(stage)};
    step.size = {.batch = 1, .tokens = tokens, .context = {}};
    steps.push_back(step);
    now += lasted;
  }
  std::int64_t warm() const { return std::ranges::count(warm_up_steps(steps, strings), true); }

  trace::Strings strings;
  std::vector<Step> steps;
  std::int64_t now = 0;
};

TEST(WarmUp, TheFirstStepsUntilTheyAreAsLater) {
  Program program;
  for (const std::int64_t lasted : {500, 10, 90, 11, 10, 12, 80}) program.step("decode", lasted);
  for (int i = 0; i < 40; ++i) program.step("decode", 10 + i % 3);
  EXPECT_EQ(program.warm(), 3);  // three that are as later end it: the 80 is an outlier, not a warm-up
  EXPECT_TRUE(warm_up_steps(program.steps, program.strings)[1]);
}

TEST(WarmUp, AtMostAQuarter) {
  Program program;
  for (int i = 0; i < 40; ++i) program.step("decode", i < 20 ? 100 : 10);
  EXPECT_EQ(program.warm(), 10);
}

TEST(WarmUp, FewStepsAreNotJudgedButForPrefillsOfOneSize) {
  Program program;
  for (const std::int64_t lasted : {500, 10, 10, 10}) program.step("decode", lasted);
  EXPECT_EQ(program.warm(), 0);
  program.step("prefill", 800, 512);
  EXPECT_EQ(program.warm(), 0);
  program.step("prefill", 40, 64);  // shorter, but so is its prompt
  EXPECT_EQ(program.warm(), 0);
  program.step("prefill", 100, 512);
  EXPECT_EQ(program.warm(), 1);
}

}  // namespace
}  // namespace llmprof::analyze
