#include "analyze/diff/diff.h"

#include <gtest/gtest.h>

#include "analyze/rules/testing/rule_run.h"
#include "base/json.h"

namespace llmprof::analyze {
namespace {

Estimate sampled(double value, double error) { return {value, error, 31, 128}; }
Estimate guessed(double value) { return {value, std::nullopt, 0, 1}; }

PartDigest part(std::string kind, std::string name, Estimate ns, double calls, std::vector<KernelUse> kernels) {
  return {.kind = std::move(kind),
          .name = std::move(name),
          .stage = "decode",
          .ns = ns,
          .calls = calls,
          .kernels = std::move(kernels)};
}

// A decode step of 2 ms; two layers, each with an mlp of 100 us in 4 kernels.
Digest run(const std::string& name) {
  Digest digest{.name = name, .folder = "/runs/" + name, .model = "llama", .device = "GPU"};
  digest.stages.push_back({.name = "decode",
                           .quantity = "TPOT",
                           .steps = 128,
                           .ns = sampled(2e6, 2e3),
                           .kernels = 200,
                           .kernel_ns = 1.9e6,
                           .batch = 1,
                           .context = 100,
                           .tokens = 1,
                           .terms = {{"gaps", 1e5}}});
  for (const char* path : {"layers.0", "layers.1", "layers.0.mlp", "layers.1.mlp"}) {
    digest.parts.push_back(part("module", path, sampled(1e5, 200), 4, {{"gemv", 4, 1e5}}));
  }
  digest.parts.push_back(part("module", "layers", sampled(2e5, 400), 8, {{"gemv", 8, 2e5}}));
  digest.parts.push_back(part("operator", "mlp", sampled(2e5, 400), 8, {{"gemv", 8, 2e5}}));
  return digest;
}

PartDigest& part_of(Digest& digest, std::string_view kind, std::string_view name) {
  for (PartDigest& each : digest.parts) {
    if (each.kind == kind && each.name == name) return each;
  }
  return digest.parts.front();
}

// layers.1.mlp executes its four kernels once more: + 100 us, 5 % of the step.
Digest slow_run(const std::string& name) {
  Digest digest = run(name);
  digest.stages[0].ns = sampled(2.1e6, 2e3);
  digest.stages[0].kernels = 204;
  for (const char* path : {"layers.1", "layers.1.mlp"})
    part_of(digest, "module", path) = part("module", path, sampled(2e5, 200), 8, {{"gemv", 8, 2e5}});
  part_of(digest, "module", "layers") = part("module", "layers", sampled(3e5, 400), 12, {{"gemv", 12, 3e5}});
  part_of(digest, "operator", "mlp") = part("operator", "mlp", sampled(3e5, 400), 12, {{"gemv", 12, 3e5}});
  return digest;
}

TEST(Diff, ThePlantedModuleIsFoundAndNamed) {
  const Diff diff = compare({"before", {run("a")}}, {"after", {slow_run("b")}});
  const DiffRow* stage = find_row(diff, "stage", "decode", "decode");
  ASSERT_NE(stage, nullptr);
  EXPECT_TRUE(stage->significant);
  EXPECT_EQ(stage->better, "worse");
  EXPECT_NEAR(*stage->change.ratio, 0.05, 1e-9);
  ASSERT_EQ(diff.causes.size(), 1);
  const DiffRow& cause = diff.rows[diff.causes[0]];
  EXPECT_EQ(cause.name, "layers.1.mlp");  // not layers, not layers.1
  ASSERT_FALSE(cause.why.empty());
  EXPECT_EQ(cause.why[0].text, "4 more kernels a step (4 -> 8)");
  EXPECT_DOUBLE_EQ(cause.why[0].ns, 1e5);
  ASSERT_FALSE(stage->why.empty());
  EXPECT_EQ(stage->why[0].text, "4 more kernels a step (8 -> 12), most of them in mlp");
  EXPECT_NE(diff.headline.find("decode is slower: TPOT 2.00 -> 2.10 ms (+5.0 %)"), std::string::npos) << diff.headline;
  EXPECT_NE(diff.headline.find("Most of it comes from layers.1.mlp"), std::string::npos) << diff.headline;
  EXPECT_NE(diff.headline.find("layers.1.mlp"), std::string::npos) << diff.headline;
}

// Parts are compared by the steps that stages are compared by: without those in which the program warms up.
TEST(Diff, PartsAreWithoutWarmUp) {
  RuleRun run;
  for (int i = 0; i < 20; ++i) {
    const std::int64_t begin = 10'000 * (i + 1), busy = i < 2 ? 8'000 : 500;
    run.step("decode", begin, begin + busy + 200, {1, 1, 10});
    run.range("module", "mlp", begin + 10, begin + busy + 150);
    run.kernel("gemv", begin + 20, begin + 100, begin + 100 + busy);
  }
  run.summary();
  trace::Run opened = std::move(*trace::Run::open(run.path()));
  const Summary summary = std::move(*summarise(opened, {}));
  const auto digest = digest_of(opened, summary);
  ASSERT_TRUE(digest) << digest.error().message;
  const auto mlp = std::ranges::find_if(
      digest->parts, [](const PartDigest& each) { return each.kind == "module" && each.name == "mlp"; });
  ASSERT_NE(mlp, digest->parts.end());
  EXPECT_DOUBLE_EQ(mlp->ns.value, 500);
  EXPECT_EQ(mlp->ns.samples, 18);
  ASSERT_EQ(digest->stages.size(), 1U);
  EXPECT_EQ(digest->stages[0].batch, 1);  // also known where some steps are left out

  const Summary asked = std::move(*summarise(opened, {.sections = kDigestSections}));
  EXPECT_TRUE(asked.diagnosis.rules.empty() && !summary.diagnosis.rules.empty());
  const auto same = digest_of(opened, asked);
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_EQ(to_json(*same), to_json(*digest)) << "a digest reads a section that it does not ask for";
}

TEST(Diff, TheSameShowsNothing) {
  const Diff diff = compare({"before", {run("a")}}, {"after", {run("b")}});
  for (const DiffRow& row : diff.rows) EXPECT_FALSE(row.significant) << row.name;
  EXPECT_TRUE(diff.causes.empty());
  EXPECT_TRUE(diff.headline.starts_with("No significant change in 7 stages and parts.\n")) << diff.headline;
  EXPECT_EQ(diff.work.same, "same");
}

// Half a percent is far beyond the error of 0.1 %, but below what counts.
TEST(Diff, SmallChangesDoNotCount) {
  Digest after = run("b");
  after.stages[0].ns = sampled(2.01e6, 100);
  EXPECT_FALSE(find_row(compare({"a", {run("a")}}, {"b", {after}}), "stage", "decode", "decode")->significant);
  EXPECT_TRUE(
      find_row(compare({"a", {run("a")}}, {"b", {after}}, {.least = 0.001}), "stage", "decode", "decode")->significant);
}

TEST(Diff, EstimatedPartsAreJudgedByTheirKernels) {
  Digest before = run("a"), after = run("b");
  PartDigest& a = part_of(before, "module", "layers.1.mlp");
  PartDigest& b = part_of(after, "module", "layers.1.mlp");
  a.ns = guessed(1e5);
  a.estimated = 1;
  b.ns = guessed(1.2e5);
  b.estimated = 1;
  const Diff same = compare({"a", {before}}, {"b", {after}});
  EXPECT_FALSE(find_row(same, "module", "decode", "layers.1.mlp")->significant);
  EXPECT_EQ(find_row(same, "module", "decode", "layers.1.mlp")->note,
            "estimated from its graph: no samples of its own");
  b.calls = 8;
  EXPECT_TRUE(find_row(compare({"a", {before}}, {"b", {after}}), "module", "decode", "layers.1.mlp")->significant);
}

TEST(Diff, AnotherAlgorithmIsNoNewOperator) {
  Digest after = run("b");
  part_of(after, "operator", "mlp") = part("operator", "mlp", sampled(3e5, 400), 8, {{"split_k", 8, 3e5}});
  const Diff diff = compare({"a", {run("a")}}, {"b", {after}});
  const DiffRow* row = find_row(diff, "operator", "decode", "mlp");
  ASSERT_FALSE(row->why.empty());
  EXPECT_EQ(row->why[0].kind, "algorithm");
  EXPECT_EQ(row->why[0].text, "other kernels for the same work: split_k instead of gemv");
}

// At 10 % less clock the kernels of 1.9 ms may take 1.9 ms x (1980 / 1782 - 1) = 211 us longer.
TEST(Diff, ALowerClockIsNamed) {
  Digest before = run("a"), after = run("b");
  before.stages[0].sm_clock_hz = 1.98e9;
  after.stages[0].sm_clock_hz = 1.782e9;
  after.stages[0].ns = sampled(2.2e6, 2e3);
  part_of(after, "operator", "mlp") = part("operator", "mlp", sampled(4e5, 400), 8, {{"gemv", 8, 4e5}});
  const Diff diff = compare({"a", {before}}, {"b", {after}});
  const DiffRow* stage = find_row(diff, "stage", "decode", "decode");
  ASSERT_GE(stage->why.size(), 2);
  EXPECT_EQ(stage->why[0].kind, "clock");
  EXPECT_EQ(stage->why[0].text, "lower clock (1980 -> 1782 MHz): 211 us at most, if arithmetic bounds the kernels");
}

TEST(Diff, WhatIsOnOneSideOnlyIsSaid) {
  Digest after = run("b");
  after.stages.push_back({.name = "prefill", .quantity = "TTFT", .steps = 2, .ns = guessed(1e7)});
  after.parts.push_back(part("module", "adapter", sampled(1e5, 100), 2, {}));
  const Diff diff = compare({"a", {run("a")}}, {"b", {after}});
  EXPECT_EQ(find_row(diff, "stage", "prefill", "prefill")->note, "new");
  EXPECT_EQ(find_row(diff, "module", "decode", "adapter")->note, "new");
}

// A run without modules, and one whose modules are told from shapes: not held against one with ranges.
TEST(Diff, PartsThatWereFoundOtherwiseAreNotCompared) {
  Digest before = run("a"), bare = run("b"), shapes = run("c");
  before.stages[0].ranges = true;
  std::erase_if(bare.parts, [](const PartDigest& each) { return each.kind == "module"; });
  bare.stages[0].ranges = true;
  const Diff one_sided = compare({"a", {before}}, {"b", {bare}});
  EXPECT_EQ(find_row(one_sided, "module", "decode", "layers"), nullptr);
  EXPECT_NE(find_row(one_sided, "operator", "decode", "mlp"), nullptr);
  EXPECT_EQ(one_sided.warnings.front(), "decode: modules are known only before");
  const Diff otherwise = compare({"a", {before}}, {"c", {shapes}});
  EXPECT_EQ(find_row(otherwise, "operator", "decode", "mlp"), nullptr);
  EXPECT_EQ(
      otherwise.warnings.front(),
      "decode: modules are instrumented before and inferred from shapes after: they and operators are not compared");
}

TEST(Diff, OtherModelsAndTheSameRunAreSaid) {
  Digest other = run("b");
  other.model = "gpt2";
  other.facts = {{"model", "parameters", "124 M", 124e6}};
  const auto says = [](const Diff& diff, std::string_view text) {
    for (const std::string& warning : diff.warnings) {
      if (warning.find(text) != std::string::npos) return true;
    }
    return diff.work.text.find(text) != std::string::npos;
  };
  // A baseline of an earlier version has no facts, but a model.
  EXPECT_TRUE(says(compare({"a", {run("a")}}, {"b", {other}}), "model gpt2 instead of llama"));
  EXPECT_TRUE(says(compare({"a", {run("a")}}, {"a", {run("a")}}), "Both are the same run"));
  EXPECT_TRUE(says(compare({"a", {run("a")}}, {"b", {run("b")}}), "one recording each"));
  EXPECT_FALSE(says(compare({"a", {run("a"), run("c")}}, {"b", {run("b"), run("d")}}), "one recording each"));
}

TEST(Digest, SurvivesItsFile) {
  const base::Json json = to_json(slow_run("a"));
  const Result<Digest> read = digest_from_json(json, "file");
  ASSERT_TRUE(read);
  EXPECT_EQ(base::to_line(to_json(*read)), base::to_line(json));
  EXPECT_FALSE(digest_from_json(base::Json::array(), "file"));
  const auto earlier =
      digest_from_json({{"measures", base::Json::array()}, {"stages", {{{"name", "decode"}, {"ranges", 1}}}}}, "file");
  ASSERT_TRUE(earlier && earlier->stages.size() == 1);  // written before truth values were true and false
  EXPECT_TRUE(earlier->stages[0].ranges);
  EXPECT_TRUE(digest_from_json(base::Json{{"measures", 3}, {"stages", "x"}, {"parts", {1, nullptr}}}, "file"));
}

}  // namespace
}  // namespace llmprof::analyze
