#include "analyze/diff/work.h"

#include <gtest/gtest.h>

#include "analyze/diff/diff.h"

namespace llmprof::analyze {
namespace {

Estimate timed(double ns) { return {ns, ns * 0.001, 31, 128}; }

StageDigest stage(std::string name, double batch, double sequence, double ns) {
  StageDigest digest{.name = std::move(name), .steps = 64, .ns = timed(ns), .mean_ns = ns};
  digest.quantity = digest.name == "prefill" ? "TTFT" : "TPOT";
  digest.batch = batch, digest.tokens = batch * (digest.name == "decode" ? 1 : sequence);
  digest.context = sequence;
  digest.flops = *digest.tokens * 2e9, digest.bytes = 2e9 + *digest.tokens * 1e5;
  digest.time_ns = ns * 64;
  return digest;
}

MeasureDigest measured(std::string name, double value) {
  return {.name = std::move(name), .unit = "1", .better = "higher", .value = Estimate{value, value * 0.001, 31, 128}};
}

// A model of 1 G parameters: a prompt, then a decode step of 2 ms.
Digest run_of(std::string name, double batch = 1, double prompt = 128) {
  Digest digest{.name = name, .folder = "/runs/" + name, .command = "serve", .model = "llama", .device = "H200"};
  digest.stages = {stage("prefill", batch, prompt, 1e7 * batch), stage("decode", batch, prompt, 2e6)};
  digest.facts = {{"model", "model", "llama", {}},  {"model", "parameters", "1.00 G", 1e9},
                  {"model", "layers", "16", 16},    {"device", "device", "H200", {}},
                  {"device", "devices", "1", 1},    {"setup", "driver", "580", {}},
                  {"setup", "command", "serve", {}}};
  digest.measures = {measured("decode.mbu", 0.32), measured("decode.tpot_p50", 0.002),
                     measured("decode.tokens_per_s", 500 * batch), measured("run.wall", 1)};
  return digest;
}

void set_fact(Digest& digest, std::string_view name, std::string text, std::optional<double> value = {}) {
  for (WorkFact& fact : digest.facts) {
    if (fact.name == name) fact.text = std::move(text), fact.value = value;
  }
}

WorkDiff worked(const Digest& a, const Digest& b) { return compare_work({"a", {a}}, {"b", {b}}); }

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Work, TheSameIsCalledTheSame) {
  const WorkDiff work = worked(run_of("a"), run_of("b"));
  EXPECT_EQ(work.same, "same");
  EXPECT_EQ(work.text, "These runs did the same work: llama, batch 1, prompt 128.");
  EXPECT_TRUE(work.differences.empty());
  EXPECT_EQ(measure_caveat(work, "decode.tpot_p50"), "");
  EXPECT_EQ(measure_caveat(work, "run.wall"), "");
}

TEST(Work, AnotherBatchIsSaidOnceAndComparedPerToken) {
  const WorkDiff work = worked(run_of("a"), run_of("b", 8, 512));
  EXPECT_EQ(work.same, "different");
  EXPECT_TRUE(has(work.text, "did not do the same work: batch 8 instead of 1; prompt 512 instead of 128."))
      << work.text;
  EXPECT_TRUE(has(work.text, "prefill per token, decode per token")) << work.text;
  const StageWork* decode = find_stage_work(work, "decode");
  EXPECT_EQ(decode->same, "different");
  EXPECT_EQ(decode->basis.after, 8);
  EXPECT_EQ(measure_caveat(work, "decode.tpot_p50"), "batch 8 instead of 1");
  EXPECT_EQ(measure_caveat(work, "decode.mbu"), "");  // what was reached of the device means the same
  EXPECT_EQ(measure_caveat(work, "run.wall"), "not the same work");
}

TEST(Work, SwappedSidesSayTheOpposite) {
  const Digest a = run_of("a"), b = run_of("b", 8, 512);
  const Diff there = compare({"a", {a}}, {"b", {b}}), back = compare({"b", {b}}, {"a", {a}});
  EXPECT_TRUE(has(back.work.text, "batch 1 instead of 8; prompt 128 instead of 512")) << back.work.text;
  for (const char* name : {"prefill", "decode"}) {
    const DiffRow *x = find_row(there, "stage", name, name), *y = find_row(back, "stage", name, name);
    EXPECT_EQ(x->per, y->per);
    EXPECT_DOUBLE_EQ(*x->before, *y->after);
    EXPECT_NEAR((1 + *x->change.ratio) * (1 + *y->change.ratio), 1, 1e-12);
    EXPECT_EQ(x->better == "better", y->better == "worse");
  }
}

// Eight sequences in the time of one: slower for nobody, and eight times the tokens.
TEST(Work, PaceIsLatencyAndThroughput) {
  const Diff diff = compare({"a", {run_of("a")}}, {"b", {run_of("b", 8)}});
  const DiffRow* rate = find_row(diff, "pace", "decode", "tokens/s");
  const DiffRow* latency = find_row(diff, "pace", "decode", "TPOT");
  const DiffRow* per_token = find_row(diff, "pace", "decode", "time per token");
  ASSERT_TRUE(rate != nullptr && latency != nullptr && per_token != nullptr);
  EXPECT_FALSE(rate->comparable);
  EXPECT_EQ(rate->better, "neither");
  EXPECT_DOUBLE_EQ(*per_token->before, 2e-3);
  EXPECT_DOUBLE_EQ(*per_token->after, 0.25e-3);
  EXPECT_EQ(per_token->better, "better");
  EXPECT_TRUE(has(diff.headline, "decode (other work): 500 -> 4000 tokens/s (+700.0 %), TPOT 2.00 -> 2.00 ms"))
      << diff.headline;
  EXPECT_FALSE(has(diff.headline, "faster") || has(diff.headline, "slower")) << diff.headline;
}

TEST(Work, AnotherModelIsComparedByItsWork) {
  Digest other = run_of("b");
  set_fact(other, "parameters", "2.00 G", 2e9);
  set_fact(other, "layers", "32", 32);
  for (StageDigest& each : other.stages) *each.flops *= 2, *each.bytes *= 2;
  const WorkDiff work = worked(run_of("a"), other);
  EXPECT_TRUE(has(work.text, "parameters 2.00 G instead of 1.00 G; layers 32 instead of 16")) << work.text;
  EXPECT_EQ(find_stage_work(work, "prefill")->basis.per, "TFLOP");
  EXPECT_EQ(find_stage_work(work, "decode")->basis.per, "GB");
  EXPECT_NE(measure_caveat(work, "decode.tokens_per_s"), "");
}

TEST(Work, AnotherDeviceIsComparedByShares) {
  Digest other = run_of("b");
  set_fact(other, "device", "A100");
  other.measures.front() = measured("decode.mbu", 0.41);
  const Diff diff = compare({"a", {run_of("a")}}, {"b", {other}});
  EXPECT_EQ(diff.work.same, "same");  // the work, not the hardware
  EXPECT_TRUE(has(diff.work.text, "They ran on different hardware: device A100 instead of H200.")) << diff.work.text;
  EXPECT_TRUE(has(diff.headline, "As shares of what each device can do: decode MBU 32.0 % -> 41.0 %")) << diff.headline;
  EXPECT_EQ(measure_caveat(diff.work, "decode.tpot_p50"), "other hardware");
}

TEST(Work, MoreStepsOfTheSameAreComparedPerStep) {
  Digest other = run_of("b");
  other.stages[1].steps = 640;
  const WorkDiff work = worked(run_of("a"), other);
  EXPECT_EQ(work.text,
            "These runs did not do the same amount of work: 640 decode steps instead of 64. Each step did the same.");
  EXPECT_EQ(find_stage_work(work, "decode")->same, "same");
  EXPECT_EQ(measure_caveat(work, "decode.tpot_p50"), "");
  EXPECT_EQ(measure_caveat(work, "decode.time"), "another number of steps");
}

TEST(Work, WhatIsNotKnownIsNotCalledTheSame) {
  Digest a{.name = "a", .folder = "/a", .command = "x"}, b{.name = "b", .folder = "/b", .command = "y"};
  a.stages = {{.name = "loop", .steps = 10, .ns = timed(1e6)}};
  b.stages = a.stages;
  const WorkDiff work = worked(a, b);
  EXPECT_EQ(work.same, "unknown");
  EXPECT_EQ(work.text, "The work cannot be compared: the runs have no matrix products.");
  EXPECT_FALSE(find_stage_work(work, "loop")->basis.comparable);
  EXPECT_NE(measure_caveat(work, "loop.step_p50"), "");
  // Matrix products tell it where nothing else does.
  a.stages[0].flops_shapes = 1e9, b.stages[0].flops_shapes = 1.001e9;
  EXPECT_EQ(worked(a, b).same, "same");
  b.stages[0].flops_shapes = 2e9;
  EXPECT_TRUE(has(worked(a, b).text, "matrix products 2.00 GFLOP a step instead of 1.00 GFLOP a step"));
  EXPECT_EQ(worked(Digest{.folder = "/a"}, Digest{.folder = "/b"}).same, "unknown");  // no steps at all
}

TEST(Work, TheOptimizerDoesNotDependOnTheBatch) {
  Digest a = run_of("a", 8), b = run_of("b", 4);
  for (Digest* run : {&a, &b}) {
    for (StageDigest& each : run->stages) each.name = each.name == "prefill" ? "forward" : "optimizer";
  }
  const WorkDiff work = worked(a, b);
  EXPECT_EQ(find_stage_work(work, "forward")->same, "different");
  EXPECT_EQ(find_stage_work(work, "optimizer")->same, "same");
}

TEST(Work, GatesOfOtherWorkWarn) {
  const Side before{"a", {run_of("a")}}, after{"b", {run_of("b", 8)}};
  const auto gates = parse_gates("decode.tpot_p50 < +3%; decode.mbu > -1%; decode.tpot_p50 < 1s; run.wall < +3%");
  ASSERT_TRUE(gates);
  const auto results = check_gates(*gates, before, after, compare(before, after));
  EXPECT_TRUE(results[0].passed);
  EXPECT_EQ(results[0].warning, "batch 8 instead of 1; comparable: decode.mbu");
  EXPECT_EQ(results[1].warning, "");
  EXPECT_EQ(results[2].warning, "");  // of after alone
  EXPECT_EQ(results[3].warning, "not the same work; comparable: decode.mbu");
  const auto same = check_gates(*gates, before, {"b", {run_of("b")}}, compare(before, {"b", {run_of("b")}}));
  for (const GateResult& each : same) EXPECT_EQ(each.warning, "") << each.gate.text;
}

TEST(Work, PartsAreComparedByTheirOwnWork) {
  const WorkDiff work = worked(run_of("a"), run_of("b", 8));
  PartDigest a{.kind = "operator", .name = "lm_head", .stage = "decode", .ns = timed(1e5)}, b = a;
  EXPECT_FALSE(part_basis(work, a, b).comparable);  // unknown work in a stage that did other work
  a.flops = b.flops = 1e9, a.bytes = b.bytes = 1e9;
  EXPECT_EQ(part_basis(work, a, b).per, "step");
  b.flops = 8e9;
  EXPECT_EQ(part_basis(work, a, b).per, "GB");
  a.bound = b.bound = "compute";
  EXPECT_EQ(part_basis(work, a, b).per, "TFLOP");
}

}  // namespace
}  // namespace llmprof::analyze
