// The engine, on rules made for it.

#include "analyze/rules/rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmprof::analyze {
namespace {

using testing::HasSubstr;

Finding saving(std::string stage, std::string title, double ns, double of = 1000) {
  Finding out{.stage = std::move(stage), .title = std::move(title)};
  out.gain = Gain{.ns = ns, .of_ns = of};
  return out;
}

RuleResult several(const RuleInput&) {
  Finding open{.stage = "decode", .verdict = Verdict::kInconclusive, .title = "open"};
  Finding known{.stage = "decode", .title = "known"};
  return {.findings = {open, known, saving("load", "loading", 9000, 10000), saving("decode", "small", 30),
                       saving("decode", "large", 300), saving("prefill", "medium", 50)}};
}
RuleResult nothing(const RuleInput&) { return {.why = "0 of 3"}; }
RuleResult unfit(const RuleInput&) { return {.applicable = false, .why = "no GPU"}; }
RuleResult open_only(const RuleInput&) {
  return {.findings = {Finding{.verdict = Verdict::kInconclusive, .title = "who knows"}}};
}

constexpr Rule kSeveral{"several", "Several", "", several}, kNothing{"nothing", "Nothing", "", nothing},
    kUnfit{"unfit", "Unfit", "", unfit}, kOpen{"open", "Open", "", open_only};

Stage stage(std::string name, std::int64_t time_ns, std::int64_t idle_ns) {
  Stage out{.name = std::move(name)};
  out.steps = 10;
  out.time_ns = time_ns;
  out.idle_ns = idle_ns;
  return out;
}

TEST(Diagnose, RanksByTimeSavedAndTellsWhatBecameOfEveryRule) {
  const std::vector<const Rule*> all = {&kSeveral, &kNothing, &kUnfit, &kOpen};
  const Diagnosis said = diagnose(Summary{}, Facts{}, all);
  std::vector<std::string> titles;
  for (const Finding& finding : said.findings) titles.push_back(finding.title);
  // By ns, whatever the stage; then what has no gain; then what is open.
  EXPECT_THAT(titles, testing::ElementsAre("Loading", "Large", "Medium", "Small", "Known", "Open", "Who knows"));
  EXPECT_EQ(said.findings[1].severity, Severity::kHigh);    // 300 of 1000; the wall time is unknown
  EXPECT_EQ(said.findings[2].severity, Severity::kMedium);  // 50 of 1000
  EXPECT_EQ(said.findings[3].severity, Severity::kLow);     // 30 of 1000
  EXPECT_EQ(said.findings[4].severity, Severity::kNote);
  EXPECT_EQ(said.findings[0].rule, "several");
  ASSERT_EQ(said.rules.size(), 4U);
  EXPECT_EQ(said.rules[0].outcome, "found");
  EXPECT_EQ(said.rules[1].outcome, "not found");
  EXPECT_EQ(said.rules[1].why, "0 of 3");
  EXPECT_EQ(said.rules[2].outcome, "not applicable");
  EXPECT_EQ(said.rules[3].outcome, "inconclusive");
}

TEST(Diagnose, WeighsFindingsByTheWholeRunAndPutsGuessedStagesBehind) {
  const std::vector<const Rule*> all = {&kSeveral};
  Summary summary;
  summary.coverage.wall_ns = 100'000;
  Diagnosis said = diagnose(summary, Facts{}, all);
  for (const Finding& finding : said.findings) {
    if (!finding.gain) continue;
    EXPECT_DOUBLE_EQ(*finding.gain->run_share, finding.gain->ns / 100'000);
    EXPECT_EQ(finding.severity, finding.gain->ns >= 5'000 ? Severity::kMedium
                                : finding.gain->ns >= 100 ? Severity::kLow
                                                          : Severity::kNote)
        << finding.title;
  }
  // Where only a part was recorded, of the stages in it.
  summary.coverage.in_stages_ns = 1000;
  EXPECT_EQ(diagnose(summary, Facts{.windowed = true}, all).whole, "the recorded stages");
  EXPECT_EQ(diagnose(summary, Facts{.windowed = true}, all).whole_ns, 1000);
  // What is said of a guess comes behind what is certain, however much it would save.
  Summary guessed;
  guessed.stages = {stage("decode", 1000, 0)};
  guessed.stages.front().confidence = 0.4;
  EXPECT_NE(diagnose(guessed, Facts{}, all).findings.front().stage, "decode");
  EXPECT_THAT(diagnose(guessed, Facts{}, all).headline, testing::HasSubstr("What looks like decode"));
}

TEST(Headline, NamesTheStageThatDominatesItsBoundAndTheLever) {
  Summary summary;
  summary.on_gpu = true, summary.busy_devices = 1, summary.model = "{}";
  summary.stages = {stage("load", 90'000, 90'000), stage("prefill", 370, 0), stage("decode", 630, 535)};
  Finding graph = saving("decode", "waits", 529.2, 630);  // 84 %
  graph.lever = "a CUDA graph";
  // 630 of 370 + 630; idle 535 of 630 = 85 %.
  EXPECT_EQ(
      headline(summary, Facts{}, {graph}),
      "Decode takes 63 % of the stages' time and the GPU is idle 85 % of it; a CUDA graph would save up to 84 %.");
}

TEST(Headline, SaysWhenLittleIsLeft) {
  Summary summary;
  summary.on_gpu = true, summary.busy_devices = 1, summary.model = "{}";
  summary.stages = {stage("decode", 1000, 20)};
  summary.stages[0].efficiency.bound = "memory", summary.stages[0].efficiency.mbu = 0.92;
  summary.stages[0].efficiency.of_floor = 0.92;
  EXPECT_THAT(headline(summary, Facts{}, {saving("decode", "little", 10)}),
              HasSubstr("92 % of the possible speed, so little is left"));
}

TEST(Headline, SaysWhatIsMissing) {
  EXPECT_THAT(headline(Summary{}, Facts{}, {}), HasSubstr("No kernels"));
  Summary lost;
  lost.coverage.data_losses = 1;
  lost.losses = {
      {.name = "records_lost", .severity = "data_loss", .unit = "", .meaning = "records", .remedy = "record less"}};
  EXPECT_THAT(headline(lost, Facts{}, {}), testing::AllOf(HasSubstr("records_lost"), HasSubstr("Record less")));
  Summary unnamed;
  unnamed.coverage.kernels = 5;
  EXPECT_THAT(headline(unnamed, Facts{}, {}), HasSubstr("--model"));
  Summary no_model;
  no_model.on_gpu = true, no_model.busy_devices = 1;
  no_model.stages = {stage("decode", 1000, 0)};
  EXPECT_THAT(headline(no_model, Facts{}, {}), HasSubstr("The model is unknown"));
  // Without stages that repeat, the longest one.
  Summary loading;
  loading.stages = {stage("load", 1000, 0)};
  loading.stages[0].share = 0.5;
  EXPECT_THAT(headline(loading, Facts{}, {}), HasSubstr("Load takes 50 % of the run"));
}

TEST(Rules, EveryRuleAnswersToAnEmptyRunWithAReason) {
  const Diagnosis said = diagnose(Summary{}, Facts{}, rules());
  EXPECT_TRUE(said.findings.empty());
  ASSERT_EQ(said.rules.size(), rules().size());
  for (std::size_t i = 0; i < said.rules.size(); ++i) {
    EXPECT_FALSE(said.rules[i].why.empty()) << said.rules[i].rule;
    EXPECT_EQ(find_rule(said.rules[i].rule), rules()[i]);
    EXPECT_FALSE(rules()[i]->meaning.empty());
  }
}

}  // namespace
}  // namespace llmprof::analyze
