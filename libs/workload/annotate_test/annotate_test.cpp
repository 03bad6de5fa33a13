// include/llmprof/annotate.h in a program of its own, with and without a listening NVTX tool.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

using testing::ElementsAre;

// Lines the program prints; the thread id in front of the tool's lines is cut off.
std::vector<std::string> run(const std::string& environment, const std::string& argument, bool with_thread = false) {
  std::vector<std::string> lines;
  FILE* const pipe = ::popen((environment + " " LLMPROF_ANNOTATED_PROGRAM " " + argument).c_str(), "r");
  char buffer[1024];
  while (std::fgets(buffer, sizeof(buffer), pipe) != nullptr) {
    std::string line(buffer);
    line.pop_back();
    if (!with_thread && line.find_first_not_of("0123456789") != 0) line.erase(0, line.find(' ') + 1);
    lines.push_back(line);
  }
  EXPECT_EQ(::pclose(pipe), 0) << environment;
  return lines;
}

const std::string kTool = "NVTX_INJECTION64_PATH=" LLMPROF_RECORDER_TOOL;

TEST(Annotate, NobodyListening) {
  EXPECT_THAT(run("env -u NVTX_INJECTION64_PATH", "all"), ElementsAre("listening 0"));
  EXPECT_THAT(run("NVTX_INJECTION64_PATH=", "all"), ElementsAre("listening 0"));
  EXPECT_THAT(run("NVTX_INJECTION64_PATH=/no/such/library.so", "all"), ElementsAre("listening 0"));
  EXPECT_THAT(run("NVTX_INJECTION64_PATH=libc.so.6", "all"), ElementsAre("listening 0"));  // not a tool
  EXPECT_THAT(run(kTool + " RECORDER_REFUSE=1", "all"), ElementsAre("listening 0"));
}

// Payloads: 2 | 128 << 16 | 128 << 40; 0xFFFF | 1 << 16 | 0xFFFFFF << 40. C and C++ share one state: one domain.
TEST(Annotate, TheToolHearsTheWholeGrammar) {
  EXPECT_THAT(run(kTool, "all"), ElementsAre("domain llmprof", "category 1=stage", "category 2=step",
                                             "category 3=module", "category 4=model", "category 5=note",
                                             "category 6=pass", "category 7=parallel", "category 8=request", "register layers.0.mlp",
                                             "mark v3/48 category=4 payload=0:0 message=1:{\"model_type\": \"llama\"}",
                                             "push v3/48 category=1 payload=0:0 message=1:prefill",
                                             "push v3/48 category=2 payload=1:800000800002 message=1:prefill",
                                             "push v3/48 category=3 payload=0:0 message=1:layers.0",
                                             "push v3/48 category=3 payload=0:0 message=3:layers.0.mlp", "pop ", "pop ",
                                             "pop ", "pop ", "push v3/48 category=1 payload=0:0 message=1:decode",
                                             "push v3/48 category=2 payload=1:ffffff000001ffff message=1:decode",
                                             "push v3/48 category=3 payload=0:0 message=1:lm_head", "register sampling",
                                             "push v3/48 category=3 payload=0:0 message=3:sampling",
                                             "mark v3/48 category=8 payload=1:fffffff00001003 message=1:r-1",
                                             "mark v3/48 category=8 payload=1:4007 message=1:", "pop ", "pop ",
                                             "pop ", "pop ", "listening 1"));
}

TEST(Annotate, AToolThatOnlyWantsRangesGetsThemWithPlainNames) {
  const std::vector<std::string> lines = run(kTool + " RECORDER_SLOTS=ranges", "all");
  ASSERT_EQ(lines.size(), 17U);  // 8 pushes, 8 pops, the last line
  EXPECT_EQ(lines[3], "push (default) v3/48 category=3 payload=0:0 message=1:layers.0.mlp");
}

// 500 ms is longer than a thread waits for another one to load the tool: early ranges are lost then, balance is not.
TEST(Annotate, FirstAnnotationsOfManyThreadsStayBalanced) {
  for (const std::string delay : {"0", "500"}) {
    std::map<std::string, int> depth;
    int pushes = 0;
    for (const std::string& line : run(kTool + " RECORDER_DELAY_MS=" + delay, "threads", true)) {
      std::istringstream words(line);
      std::string thread, what;
      words >> thread >> what;
      depth[thread] += what == "push" ? 1 : what == "pop" ? -1 : 0;
      pushes += what == "push";
      ASSERT_GE(depth[thread], 0);
    }
    for (const auto& [thread, open] : depth) EXPECT_EQ(open, 0) << thread;
    // Without delay everyone waits and nothing is lost; the loading thread loses nothing in any case.
    EXPECT_GE(pushes, delay == "0" ? 4 * 100 * 5 : 100 * 5);
  }
}

}  // namespace
