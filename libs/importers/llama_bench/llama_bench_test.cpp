// By hand, by the schema of llama-bench.
#include <gmock/gmock.h>

#include "importers/testing_files.h"

namespace llmprof::importers {
namespace {

using testing::HasSubstr;

constexpr std::string_view kTest =
    R"({"build_commit": "8cf427ff", "build_number": 5163, "cpu_info": "C", "gpu_info": "", "backends": "CPU",)"
    R"( "model_filename": "/home/somebody/models/q.gguf", "model_type": "qwen2 7B Q4_K - Medium", "n_prompt": 512, "n_gen": 0,)"
    R"( "n_depth": 0, "test_time": "2025-04-24T11:58:50Z", "avg_ns": 75, "stddev_ns": 5, "avg_ts": 7100.0, "stddev_ts": 140.3,)"
    R"( "samples_ns": [70, 80], "samples_ts": [7200.0, 7000.0]})";

TEST(LlamaBench, ArrayAndLines) {
  std::string generation(kTest);
  generation.replace(generation.find("\"n_prompt\": 512, \"n_gen\": 0"), 27, "\"n_prompt\": 0, \"n_gen\": 128");
  for (const std::string& text : {"[\n" + std::string(kTest) + ",\n" + generation + "\n]\n", std::string(kTest) + "\n" + generation}) {
    EXPECT_EQ(sniff(text)->name, "llama-bench");
    const Imports imports("llama-bench", text);
    ASSERT_EQ(imports.error(), "");
    EXPECT_EQ(imports.sink.facts.tool, "llama-bench, build 8cf427ff (5163)");
    const auto experiments = imports.sink.rows<trace::ExperimentRow>();
    ASSERT_EQ(experiments.size(), 2u);
    EXPECT_EQ(imports.name(experiments[0].name), "pp512");
    EXPECT_EQ(imports.name(experiments[1].name), "tg128");
    EXPECT_THAT(imports.name(experiments[0].settings), HasSubstr("\"model_filename\":\"q.gguf\""));
    const auto figures = imports.sink.rows<trace::ReportedFigureRow>();
    ASSERT_EQ(figures.size(), 16u);
    EXPECT_EQ(imports.name(figures[0].key), "prompt_tokens_per_s");
    EXPECT_EQ(figures[0].value, 7100.0);
    EXPECT_EQ(imports.name(figures[8].key), "output_tokens_per_s");
    EXPECT_EQ(imports.name(figures[2].statistic), "sample");
  }
}

TEST(LlamaBench, WhatIsNoTest) {
  EXPECT_THAT(Imports("llama-bench", "[]").error(), HasSubstr("byte 0: holds no test"));
  EXPECT_EQ(Imports("llama-bench", "{\"a\": 1}\n" + std::string(kTest)).sink.lost(trace::Loss::kInputIgnored), 1);
}

}  // namespace
}  // namespace llmprof::importers
