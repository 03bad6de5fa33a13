#include "report/sections.h"

#include <gtest/gtest.h>

#include "report/drawn.h"

namespace llmprof::report {
namespace {

Page sampled_page() {
  Page page;
  page.summary.host.stacks = {.samples = 200,
                              .truncated = 3,
                              .without_stack = 1,
                              .lost = 2,
                              .sampled_ns = 2'000'000'000,
                              .truncated_share = 0.015};
  page.summary.host.functions = {
      {.name = "sgemm_kernel",
       .file = "/usr/lib/libblas.so.3",
       .kind = "native",
       .stage = "forward",
       .samples = 150,
       .self_ns = 1'500'000'000,
       .total_ns = 1'500'000'000,
       .self_share = 0.75},
      {.name = "Model.forward",
       .file = "/home/me/train.py",
       .kind = "python",
       .stage = "",
       .calls = 40,
       .samples = 199,
       .self_ns = 10'000'000,
       .total_ns = 1'990'000'000,
       .self_share = 0.005},
  };
  return page;
}

TEST(Functions, AreATableWithItsDenominator) {
  const std::string text = drawn("functions[]", sampled_page());
  EXPECT_EQ(text,
            "\nFunctions by self time\n"
            "  function       in            kind    stage    calls     self  self %   total\n"
            "  sgemm_kernel   libblas.so.3  native  forward      -   1.50 s    75.0  1.50 s\n"
            "  Model.forward  train.py      py      (none)      40  10.0 ms     0.5  1.99 s\n"
            "  CPU time of all threads, from stack samples. self %: of the CPU time sampled in the stage. total:\n"
            "  with what it called. calls: where BLAS calls or ranges of that name were counted.\n");
}

TEST(Functions, AreCutAtTop) {
  Page page = sampled_page();
  page.top = 1;
  const std::string text = drawn("functions[]", page);
  EXPECT_EQ(text.find("Model.forward"), std::string::npos);
  EXPECT_NE(text.find("1 more functions; --top shows more."), std::string::npos);
}

TEST(Functions, FollowTheChosenStage) {
  Page page = sampled_page();
  page.stage = "forward";
  EXPECT_EQ(drawn("functions[]", page).find("Model.forward"), std::string::npos);
  EXPECT_EQ(report_json(page)["functions"].size(), 1u);
}

TEST(Functions, SayHowManyStacksAreTruncated) {
  EXPECT_EQ(stack_coverage(sampled_page()),
            "  2.00 s of CPU time in 200 stack samples; 1.5 % of the stacks are truncated (outer frames missing),\n"
            "  1 could not be read, 2 more were lost.\n");
  EXPECT_EQ(report_json(sampled_page())["stacks"]["truncated_share"], 0.015);
}

TEST(Functions, SayWhyThereAreNone) {
  Page page;
  EXPECT_EQ(stack_coverage(page), "");
  EXPECT_EQ(drawn("functions[]", page), "");
  page.summary.host.stacks.why = "Permission denied";
  EXPECT_EQ(stack_coverage(page), "  CPU stacks were not sampled: Permission denied.\n");
  EXPECT_TRUE(report_json(page)["stacks"]["truncated_share"].is_null());
}

TEST(Functions, JsonHasTheWholePathAndNullForUnknown) {
  const base::Json json = report_json(sampled_page())["functions"];
  EXPECT_EQ(json[0]["file"], "/usr/lib/libblas.so.3");
  EXPECT_TRUE(json[0]["calls"].is_null());
  EXPECT_TRUE(json[1]["stage"].is_null());
  EXPECT_EQ(json[1]["calls"], 40);
}

}  // namespace
}  // namespace llmprof::report
