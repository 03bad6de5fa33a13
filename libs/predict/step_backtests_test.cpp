#include "predict/step_backtests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "model/config.h"
#include "predict/document.h"
#include "trace/test_run.h"

namespace llmprof::predict {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kConfig =
    R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 4, )"
    R"("num_key_value_heads": 2, "intermediate_size": 12, "vocab_size": 10, "tie_word_embeddings": false, )"
    R"("torch_dtype": "float32", "_name_or_path": "/home/somebody/model"})";

// A decode step of one kernel, 1000 ns for one sequence and 4000 ns for four, and a host of 500 ns.
ProgramCost cost(bool graph = true) {
  StageSteps stage{.stage = "decode", .step_id = 1, .batch = 1, .rows = 1, .contexts = 100, .graph = graph};
  stage.host.around_ns = {500, 500, 500, 10};
  stage.kernels.push_back({.name = "void rotate<float>(int)", .blocks = 1, .threads = 32});
  ProbedRows rows{.framework = "torch", .version = "2.11", .device = "NVIDIA H200"};
  for (const double n : {1.0, 4.0})
    rows.kernels.push_back({"rotate<float>", "rotary", "rows", "decode", graph, n, n, 32, 1000 * n});
  rows.kernels.push_back({"other<float>", "another", "rows", "decode", graph, 1, 1, 32, 777});
  auto made = ProgramCost::make({.run = "/tmp/base_1.llmprof", .command = {}, .stages = {stage}}, rows);
  EXPECT_TRUE(made);
  return std::move(*made);
}

model::Config config() { return *model::parse_config(kConfig, "test"); }

MeasuredSteps decode(std::int64_t batch, double ns) {
  return {.stage = "decode",
          .batch = batch,
          .context = 100,
          .graph = true,
          .ns = ns,
          .low_ns = ns,
          .high_ns = ns,
          .steps = 20,
          .from = "run_2"};
}

TEST(StepBacktest, PredictsStepsOfOtherRuns) {
  const auto got =
      backtest_program(cost(), config(), "NVIDIA H200", {decode(1, 1500), decode(2, 2600), decode(2, 2000)});
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_EQ(got->checks.size(), 3u);
  // Measured kernels may be off by 4 and 3 %, the host by nothing.
  EXPECT_DOUBLE_EQ(got->checks[0].predicted_ns, 1500);
  EXPECT_DOUBLE_EQ(got->checks[0].low_ns, 1430);
  EXPECT_DOUBLE_EQ(got->checks[0].high_ns, 1570);
  // Half-way between one and four sequences, 8 and 3 %: 2000 ± 220, and the host.
  EXPECT_DOUBLE_EQ(got->checks[1].predicted_ns, 2500);
  EXPECT_NEAR(got->checks[1].low_ns, 2280, 1e-6);
  EXPECT_NEAR(got->checks[1].error(), 2500.0 / 2600 - 1, 1e-12);
  EXPECT_TRUE(got->checks[1].inside());
  EXPECT_FALSE(got->checks[2].inside());
  EXPECT_EQ(got->covered(), 2);
  EXPECT_THAT(got->name, HasSubstr("llama of"));
}

TEST(StepBacktest, SaysWhatCannotBePredicted) {
  MeasuredSteps eager = decode(1, 1500), prefill = decode(1, 1500);
  eager.graph = false, prefill.stage = "prefill";
  const auto got = backtest_program(cost(), config(), "NVIDIA H200", {decode(1, 1500), eager, prefill});
  ASSERT_TRUE(got);
  EXPECT_THAT(got->checks, SizeIs(1));
  EXPECT_THAT(got->notes, ElementsAre(HasSubstr("launched one by one"), HasSubstr("no step of this stage")));
  const auto nothing = backtest_program(cost(), config(), "NVIDIA H200", {eager});
  ASSERT_FALSE(nothing);
  EXPECT_THAT(nothing.error().message, HasSubstr("launched one by one"));
}

TEST(StepBacktest, AFolderSaysTheSame) {
  const std::vector<MeasuredSteps> steps{decode(1, 1500), decode(3, 3333.35)};
  const ProgramCost program = cost();
  const auto before = backtest_program(program, config(), "NVIDIA H200", steps);
  const auto files = files_of(program, {.model = "llama", .config_text = kConfig, .device = "NVIDIA H200"}, steps);
  const trace::TestFolder scratch;
  const std::string folder = scratch / "mine";
  ASSERT_TRUE(base::make_directories(folder));
  for (const auto& [name, text] : files) {
    EXPECT_EQ(text.find("/home"), std::string::npos) << name;
    EXPECT_EQ(text.find("/tmp"), std::string::npos) << name;
    EXPECT_EQ(text.find("another"), std::string::npos) << name;  // rows that no kernel is looked up by
    ASSERT_TRUE(base::write_file(folder + "/" + name, text));
  }
  ASSERT_TRUE(is_step_backtest(folder));
  const auto after = step_backtest_folder(folder);
  ASSERT_TRUE(after) << after.error().message;
  ASSERT_TRUE(before);
  ASSERT_EQ(after->checks.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_DOUBLE_EQ(after->checks[i].predicted_ns, before->checks[i].predicted_ns);
    EXPECT_DOUBLE_EQ(after->checks[i].low_ns, before->checks[i].low_ns);
    EXPECT_NEAR(after->checks[i].measured.ns, before->checks[i].measured.ns, 0.06);
  }
  EXPECT_EQ(after->name, before->name);
}

TEST(StepBacktest, SumsUpWhatIntervalsHeld) {
  const auto got =
      backtest_program(cost(), config(), "NVIDIA H200", {decode(1, 1500), decode(2, 2600), decode(2, 2000)});
  ASSERT_TRUE(got);
  const BacktestDocument document = document_of({}, {*got});
  ASSERT_THAT(document.steps, SizeIs(1));
  EXPECT_EQ(document.steps[0].sizes, 3);
  EXPECT_EQ(document.steps[0].steps, 60);
  EXPECT_EQ(document.steps[0].covered, 2);
  EXPECT_NEAR(document.steps[0].median_error, 1 - 2500.0 / 2600, 1e-12);
  EXPECT_NEAR(document.steps[0].worst_error, 0.25, 1e-12);
  ASSERT_THAT(document.coverage, SizeIs(1));
  EXPECT_EQ(document.coverage[0].stated, 3);
  EXPECT_NEAR(*document.coverage[0].share, 2.0 / 3, 1e-12);
}

TEST(StepBacktest, TheNearestIsOfTheSameDeviceAndSize) {
  auto here = backtest_program(cost(), config(), "NVIDIA H200", {decode(1, 1500), decode(8, 8500)});
  auto there = backtest_program(cost(), config(), "NVIDIA A100-SXM4-80GB", {decode(4, 4500)});
  ASSERT_TRUE(here && there);
  const std::vector<StepBacktest> known{*there, *here};
  PredictedStage of{.stage = "decode", .device = "NVIDIA H200", .program = true, .graph = true, .parameters = 1e9};
  of.size = {6, 6, 600};
  EXPECT_EQ(nearest(known, of).check->measured.batch, 8);
  of.size = {2, 2, 150};
  EXPECT_EQ(nearest(known, of).check->measured.batch, 1);
  of.device = "NVIDIA A100-SXM4-80GB";
  EXPECT_EQ(nearest(known, of).backtest, &known[0]);
  of.stage = "prefill";
  EXPECT_EQ(nearest(known, of).check, nullptr);
}

TEST(StepBacktest, LinesOfMeasuredSteps) {
  const auto back = parse_measured_steps(to_lines({decode(3, 1234.5)}), "test");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->at(0).ns, 1234.5);
  EXPECT_EQ(back->at(0).batch, 3);
  EXPECT_TRUE(back->at(0).graph);
  const auto least = parse_measured_steps(R"({"stage": "prefill", "tokens": 512, "launch": "eager", "ns": 9})", "test");
  ASSERT_TRUE(least) << least.error().message;
  EXPECT_EQ(least->at(0).size().contexts, 512);
  for (const char* bad : {"x", "[]", R"({"stage": "mixed", "launch": "graph", "ns": 1, "context": 5})",
                          R"({"stage": "decode", "launch": "graph", "ns": 1})",
                          R"({"stage": "decode", "launch": "graph", "ns": -1, "context": 5})",
                          R"({"stage": "decode", "launch": "fast", "ns": 1, "context": 5})",
                          R"({"stage": "decode", "launch": "graph", "ns": 1, "context": 5, "batch": 1.5})",
                          R"({"stage": "prefill", "launch": "graph", "ns": 1})"}) {
    const auto parsed = parse_measured_steps(std::string("\n") + bad, "file");
    ASSERT_FALSE(parsed) << bad;
    EXPECT_THAT(parsed.error().message, HasSubstr("file, line 2"));
  }
}

}  // namespace
}  // namespace llmprof::predict
