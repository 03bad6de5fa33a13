#include <gtest/gtest.h>

#include <random>

#include "analyze/steps/waterfall.h"

namespace llmprof::analyze {

namespace {

using model::OpClass;

std::int64_t term(const Waterfall& waterfall, std::string_view name, std::string_view op_class = "") {
  for (const WaterfallTerm& each : waterfall.terms) {
    if (each.name == name && each.op_class == op_class) return each.ns.value();
  }
  ADD_FAILURE() << "no term " << name << " " << op_class;
  return INT64_MIN;
}

bool has(const Waterfall& waterfall, std::string_view name, std::string_view op_class = "") {
  return std::any_of(waterfall.terms.begin(), waterfall.terms.end(),
                     [&](const WaterfallTerm& t) { return t.name == name && t.op_class == op_class; });
}

std::int64_t sum(const Waterfall& waterfall) {
  std::int64_t total = waterfall.floor_ns.value_or(0);
  for (const WaterfallTerm& each : waterfall.terms) total += each.ns.value_or(0);
  return total;
}

// Two decode samples of 1000 ns each, on a GPU.
//   times   q_proj 600, attention 300, norm 50, a kernel of no operator 70; between 400, gaps 380, waits 120, copies 80
//           600 + 300 + 50 + 70 + 400 + 380 + 120 + 80 = 2000
//   floors  q_proj 350, attention 320, norm 20, up_proj (not seen) 30: 720; the steps as a whole 650
//   terms   projection 600 - 350 = 250, norm 50 - 20 = 30, attention 300 - 320 = -20 (faster), not seen -30,
//           one after another 720 - 650 = 70
//           400 + 380 + 120 + 80 + 250 + 30 + 70 (unmatched) + 0 (residual) + 70 - 20 - 30 + 650 = 2000
WaterfallFacts two_samples() {
  return {.stage = "decode",
          .quantity = "TPOT",
          .samples = 2,
          .times = {{Owner::kKernel, "self_attn.q_proj", 600},
                    {Owner::kKernel, "self_attn.attention", 300},
                    {Owner::kKernel, "input_layernorm", 50},
                    {Owner::kKernel, "", 70},
                    {Owner::kBetween, "", 400},
                    {Owner::kGap, "", 380},
                    {Owner::kWait, "", 120},
                    {Owner::kCopy, "", 80}},
          .operators = {{"self_attn.q_proj", OpClass::kProjection, true, 350},
                        {"self_attn.attention", OpClass::kAttention, true, 320},
                        {"input_layernorm", OpClass::kNorm, true, 20},
                        {"mlp.up_proj", OpClass::kProjection, true, 30}},
          .floor_ns = 650.0,
          .floor_why = "",
          .layer_prefix = "layers"};
}

TEST(Waterfall, NamesEveryLossAndAddsUp) {
  const Waterfall w = waterfall_of(two_samples());
  EXPECT_EQ(w.measured_ns, 2000);
  EXPECT_EQ(term(w, "between_steps"), 400);
  EXPECT_EQ(term(w, "gaps"), 380);
  EXPECT_EQ(term(w, "waits"), 120);
  EXPECT_EQ(term(w, "copies"), 80);
  EXPECT_EQ(term(w, "above_floor", "projection"), 250);
  EXPECT_EQ(term(w, "above_floor", "norm"), 30);
  EXPECT_EQ(term(w, "unmatched_kernels"), 70);
  EXPECT_EQ(term(w, "residual"), 0);
  EXPECT_EQ(term(w, "one_after_another"), 70);
  EXPECT_EQ(term(w, "faster_than_floor", "attention"), -20);
  EXPECT_EQ(term(w, "not_seen"), -30);
  EXPECT_EQ(w.floor_ns, 650);
  EXPECT_EQ(sum(w), 2000);
  EXPECT_DOUBLE_EQ(w.mean_ns(w.measured_ns), 1000);
  EXPECT_DOUBLE_EQ(w.share(250), 0.125);
}

TEST(Waterfall, ClockLossIsNeverInvented) {
  const Waterfall w = waterfall_of(two_samples());
  const auto clock = std::find_if(w.terms.begin(), w.terms.end(), [](const auto& t) { return t.name == "clock"; });
  ASSERT_NE(clock, w.terms.end());
  EXPECT_FALSE(clock->ns.has_value());
  EXPECT_EQ(clock->why, "no telemetry");
}

TEST(Waterfall, FasterAndSlowerOperatorsOfAClassDoNotCancel) {
  // Both are projections: 100 ns above and 40 ns below their floors.
  const Waterfall w =
      waterfall_of({.stage = "prefill",
                    .quantity = "TTFT",
                    .samples = 1,
                    .times = {{Owner::kKernel, "mlp.up_proj", 300}, {Owner::kKernel, "mlp.down_proj", 160}},
                    .operators = {{"mlp.up_proj", OpClass::kProjection, true, 200},
                                  {"mlp.down_proj", OpClass::kProjection, true, 200}},
                    .floor_ns = 400.0});
  EXPECT_EQ(term(w, "above_floor", "projection"), 100);
  EXPECT_EQ(term(w, "faster_than_floor", "projection"), -40);
  EXPECT_EQ(term(w, "one_after_another"), 0);
  EXPECT_FALSE(has(w, "between_steps"));
  EXPECT_EQ(sum(w), 460);
}

TEST(Waterfall, APartStandsForTheOperatorsInsideItThatWereNotSeenAlone) {
  // q_proj was seen; rope and the attention core ran in self_attn itself. Its class is that of the larger floor.
  // attention 500 - (90 + 10) = 400; projection 100 - 60 = 40.
  const Waterfall w =
      waterfall_of({.stage = "decode",
                    .quantity = "step time",
                    .samples = 1,
                    .times = {{Owner::kKernel, "self_attn.q_proj", 100}, {Owner::kKernel, "self_attn", 500}},
                    .operators = {{"self_attn.q_proj", OpClass::kProjection, true, 60},
                                  {"self_attn.rope", OpClass::kRope, true, 10},
                                  {"self_attn.attention", OpClass::kAttention, true, 90}},
                    .floor_ns = 160.0,
                    .floor_why = "",
                    .layer_prefix = "layers"});
  EXPECT_EQ(term(w, "above_floor", "attention"), 400);
  EXPECT_EQ(term(w, "above_floor", "projection"), 40);
  EXPECT_FALSE(has(w, "not_seen"));
  EXPECT_EQ(sum(w), 600);
}

TEST(Waterfall, WhatIsLeftInTheBlockOfTheRotationIsNotAllRotation) {
  const Waterfall w = waterfall_of(
      {.stage = "decode",
       .quantity = "step time",
       .samples = 1,
       .times = {{Owner::kKernel, "self_attn.core", 100}, {Owner::kKernel, "self_attn", 50}},
       .operators = {{"self_attn.rope", OpClass::kRope, true, 10}, {"self_attn.core", OpClass::kAttention, true, 90}},
       .floor_ns = 100.0,
       .floor_why = "",
       .layer_prefix = "layers"});
  EXPECT_EQ(term(w, "above_floor", "elementwise"), 40);
  EXPECT_EQ(term(w, "above_floor", "attention"), 10);
}

TEST(Waterfall, AWholeLayerStandsForItsOperatorsButNotForThoseOutside) {
  const Waterfall w = waterfall_of(
      {.stage = "decode",
       .quantity = "step time",
       .samples = 1,
       .times = {{Owner::kKernel, "layers", 500}},
       .operators = {{"mlp.up_proj", OpClass::kProjection, true, 60}, {"lm_head", OpClass::kLogits, false, 15}},
       .floor_ns = 75.0,
       .floor_why = "",
       .layer_prefix = "layers"});
  EXPECT_EQ(term(w, "above_floor", "projection"), 440);
  EXPECT_EQ(term(w, "not_seen"), -15);
  EXPECT_EQ(sum(w), 500);
}

TEST(Waterfall, HostCodeOnACpuIsWorkAConnectionOrUnknown) {
  // q_proj: 100 in the BLAS call and 20 in loops beside it, floor 90: 30 above. self_attn holds q_proj and nothing that
  // was not seen: its own 7 ns connect operators, which is a gap. The model has no "my_hook": 5 ns of residual.
  const Waterfall w = waterfall_of({.stage = "decode",
                                    .quantity = "step time",
                                    .samples = 1,
                                    .times = {{Owner::kKernel, "self_attn.q_proj", 100},
                                              {Owner::kHost, "self_attn.q_proj", 20},
                                              {Owner::kHost, "self_attn", 7},
                                              {Owner::kHost, "my_hook", 5},
                                              {Owner::kGap, "", 3}},
                                    .operators = {{"self_attn.q_proj", OpClass::kProjection, true, 90}},
                                    .floor_ns = 90.0,
                                    .floor_why = "",
                                    .layer_prefix = "layers"});
  EXPECT_EQ(term(w, "above_floor", "projection"), 30);
  EXPECT_EQ(term(w, "gaps"), 10);
  EXPECT_EQ(term(w, "residual"), 5);
  EXPECT_EQ(sum(w), 135);
}

TEST(Waterfall, WithoutAFloorTheTimesStillAddUp) {
  WaterfallFacts facts = two_samples();
  facts.operators.clear();
  facts.floor_ns.reset();
  facts.floor_why = "no model";
  facts.waits_known = false;
  const Waterfall w = waterfall_of(facts);
  EXPECT_FALSE(w.floor_ns.has_value());
  EXPECT_EQ(w.why, "no model");
  EXPECT_EQ(term(w, "kernels"), 600 + 300 + 50 + 70);
  EXPECT_EQ(sum(w), 2000);
}

TEST(Waterfall, AddsUpExactlyWhateverTheFactsAre) {
  std::mt19937 random(11);
  const std::vector<std::string> names = {"",        "layers", "self_attn", "self_attn.q_proj", "mlp.up_proj",
                                          "lm_head", "odd"};
  for (int round = 0; round < 2000; ++round) {
    const auto pick = [&](std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(0, most)(random); };
    WaterfallFacts facts{.stage = "decode", .quantity = "TPOT", .samples = 1 + pick(5), .layer_prefix = "layers"};
    std::int64_t measured = 0;
    for (std::int64_t i = pick(12); i >= 0; --i) {
      facts.times.push_back(
          {static_cast<Owner>(pick(kOwners - 1)), names[pick(names.size() - 1)], pick(1'000'000'007)});
      measured += facts.times.back().ns;
    }
    double floors = 0;
    for (std::int64_t i = pick(6); i > 0; --i) {
      facts.operators.push_back({names[1 + pick(names.size() - 2)], static_cast<OpClass>(pick(9)), pick(1) == 0,
                                 static_cast<double>(pick(1'000'000'000)) / 3});
      floors += facts.operators.back().floor_ns;
    }
    facts.floor_ns = floors / (1.0 + static_cast<double>(pick(3)) / 7);
    const Waterfall w = waterfall_of(facts);
    ASSERT_EQ(w.measured_ns, measured);
    ASSERT_EQ(sum(w), measured) << round;
    for (const WaterfallTerm& each : w.terms) {  // what is negative says so in its name
      EXPECT_TRUE(each.ns.value_or(0) > -8 || each.name == "faster_than_floor" || each.name == "not_seen") << each.name;
    }
  }
}

}  // namespace

}  // namespace llmprof::analyze
