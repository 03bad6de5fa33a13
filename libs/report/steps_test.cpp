#include "report/sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/drawn.h"
#include "report/layout.h"

namespace llmprof::report {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Sparkline, SpansTheSmallestToTheLargest) {
  EXPECT_EQ(sparkline({0, 10, 20, 30, 40, 50, 60, 70}, 80), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline({5, 5, 5}, 80), "▁▁▁");
  EXPECT_EQ(sparkline({7}, 80), "▁");
  EXPECT_EQ(sparkline({}, 80), "");
  EXPECT_EQ(sparkline({INT64_MAX, 0}, 80), "█▁");
}

TEST(Sparkline, ABarOfSeveralValuesShowsTheLargest) {
  EXPECT_EQ(sparkline({1, 1, 1, 9, 1, 1}, 3), "▁█▁");
  std::vector<std::int64_t> values(10'001, 3);
  values[7000] = 4;
  const std::string line = sparkline(values, 80);
  EXPECT_EQ(line.size(), 80U * 3);  // each bar is three bytes of UTF-8
  EXPECT_THAT(line, HasSubstr("█"));
}

TEST(Sparkline, HasAnAsciiForm) {
  EXPECT_EQ(sparkline({0, 10, 20, 30, 40, 50, 60, 70}, 80, false), "_.-~=+*#");
  EXPECT_EQ(sparkline({0, 50, 200}, 80, true, {0, 100}), "▁▅█");  // beyond the range: as its end
}

TEST(StepLines, ShowLeastMedianAndMostAndKeepNoiseLow) {
  Page page;
  page.summary.step_curves = {
      {.stage = "decode",
       .steps = 4,
       .least_ns = 1'000'000,
       .median_ns = 1'010'000,
       .most_ns = 1'020'000,
       .duration_ns = {1'000'000, 1'020'000, 1'010'000, 1'020'000}},
      {.stage = "prefill", .steps = 1, .least_ns = 5, .median_ns = 5, .most_ns = 5, .duration_ns = {5}}};
  // 2 % of noise is below an eighth of a quarter.
  EXPECT_THAT(step_lines(page), HasSubstr("  decode  ▁▁▁▁  1.00 ms  1.01 ms  1.02 ms\n"));
  EXPECT_THAT(step_lines(page), Not(HasSubstr("prefill")));
  page.unicode = false;
  EXPECT_THAT(step_lines(page), HasSubstr("  decode  ____  "));
  page.stage = "prefill";
  EXPECT_EQ(step_lines(page), "");
}

// Three steps of 10, 40 and 20 us; 1 us of each lies between the stages.
Page trained() {
  Page page;
  page.summary.training = {{.process_id = 1, .thread_id = 1}};
  for (const std::int64_t total : {10'000, 40'000, 20'000}) {
    page.summary.training[0].steps.push_back(
        {.number = static_cast<std::int64_t>(page.summary.training[0].steps.size()),
         .begin_ns = 5,
         .forward_ns = total / 5,
         .backward_ns = total / 2,
         .optimizer_ns = total * 3 / 10 - 1000,
         .total_ns = total,
         .between_ns = 1000});
  }
  return page;
}

TEST(TrainingTable, FirstMedianLastAndSlowest) {
  const std::string text = drawn(training_table, trained());
  EXPECT_THAT(text, HasSubstr("first       0  2.00 us   5.00 us    2.00 us  1.00 us  10.0 us\n"));
  EXPECT_THAT(text, HasSubstr("median      2  4.00 us"));
  EXPECT_THAT(text, HasSubstr("last        2  4.00 us"));
  EXPECT_THAT(text, HasSubstr("slowest     1  8.00 us   20.0 us    11.0 us  1.00 us  40.0 us\n"));
  EXPECT_THAT(text, HasSubstr("  ▁█▃\n"));  // (20 - 10) / (40 - 10) of 8 bars: 2.7
  EXPECT_THAT(text, HasSubstr("Total of 3 steps in order of time: 10.0 us to 40.0 us."));
}

TEST(TrainingTable, NothingWithoutTraining) {
  EXPECT_EQ(drawn(training_table, Page{}), "");
  Page one_stage = trained();
  one_stage.stage = "forward";
  EXPECT_EQ(drawn(training_table, one_stage), "");
}

TEST(TrainingTable, SeveralThreadsThatTrainAreCounted) {
  Page page = trained();
  page.summary.training.push_back(page.summary.training[0]);
  EXPECT_THAT(drawn(training_table, page), HasSubstr("1 more thread trained too"));
}

TEST(BlockTable, TheCostliestBlocksInTheOrderOfTheModel) {
  Page page;
  page.summary.stages = {{.name = "load"}, {.name = "forward"}, {.name = "optimizer"}};
  page.summary.blocks = {{"wte", {{"forward", 1, 10}, {"optimizer", 1, 70}}},
                         {"h.0", {{"forward", 1, 500}}},
                         {"h.1", {{"forward", 1, 20}}},
                         {"lm_head", {{"forward", 1, 900}}}};
  const std::string all = block_table(page, {});
  EXPECT_THAT(all, HasSubstr("  block    forward  optimizer\n"));  // load has no blocks
  EXPECT_THAT(all, HasSubstr("  wte        10 ns      70 ns\n  h.0       500 ns          -\n"));
  page.top = 3;
  const std::string some = block_table(page, {});
  EXPECT_THAT(some, Not(HasSubstr("h.1")));
  EXPECT_LT(some.find("wte"), some.find("h.0"));
  EXPECT_LT(some.find("h.0"), some.find("lm_head"));
  EXPECT_THAT(some, HasSubstr("1 block that took less"));
  page.stage = "optimizer";
  EXPECT_THAT(block_table(page, {}), Not(HasSubstr("forward")));
}

TEST(TrainingJson, HasEveryStep) {
  const base::Json json = report_json(trained())["training"];
  ASSERT_EQ(json.size(), 1U);
  ASSERT_EQ(json[0]["steps"].size(), 3U);
  EXPECT_EQ(json[0]["steps"][1]["total_ns"], 40'000);
  EXPECT_EQ(json[0]["steps"][1]["backward_ns"], 20'000);
}

}  // namespace
}  // namespace llmprof::report
