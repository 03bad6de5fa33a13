#include <gtest/gtest.h>

#include <gmock/gmock.h>
#include <array>
#include <map>

#include "analyze/model/efficiency.h"
#include "analyze/model/model_passes.h"

namespace llmprof::analyze {

namespace {

using testing::HasSubstr;

// Every process computes all of the model.
GraphOfProcess only(const model::Graph& graph) {
  return [&graph](std::int64_t) { return &graph; };
}

// 1 GFLOP/s and 1 GB/s: an amount per nanosecond is its ratio to the peak.
Denominators plain() { return {.peak_flops = 1e9, .peak_bandwidth = 1e9}; }

TEST(ForStage, TrainingSweepsOverMoreThanTheWeights) {
  const Denominators by{.weights_fit_cache = true, .training_fits_cache = false};
  EXPECT_TRUE(for_stage(by, "decode").weights_fit_cache);
  for (const char* stage : {"forward", "backward", "optimizer"}) {
    EXPECT_FALSE(for_stage(by, stage).weights_fit_cache) << stage;
  }
}

TEST(Efficiency, RatesRatiosAndBound) {
  Efficiency e{.flops = 200.0, .flops_shapes = 300.0, .bytes = 500.0};
  complete(e, 1000, plain());
  EXPECT_DOUBLE_EQ(*e.flops_per_s, 0.2e9);
  EXPECT_DOUBLE_EQ(*e.flops_shapes_per_s, 0.3e9);
  EXPECT_DOUBLE_EQ(*e.mfu, 0.2);
  EXPECT_DOUBLE_EQ(*e.mbu, 0.5);
  EXPECT_EQ(e.bound, "memory");
  EXPECT_EQ(e.why, "");
}

TEST(Efficiency, WhatIsComputedAgainCountsForHfuAlone) {
  Efficiency e{.flops = 200.0, .bytes = 500.0, .recomputed_flops = 100.0};
  complete(e, 1000, plain());
  EXPECT_DOUBLE_EQ(*e.mfu, 0.2);
  EXPECT_DOUBLE_EQ(*e.hfu, 0.3);
  Efficiency once{.flops = 200.0, .bytes = 500.0};
  complete(once, 1000, plain());
  EXPECT_FALSE(once.hfu);
}

TEST(Efficiency, WeightsInTheCacheHideMbuAndMemoryBound) {
  Denominators by = plain();
  by.weights_fit_cache = true;
  Efficiency e{.flops = 200.0, .bytes = 500.0};
  complete(e, 1000, by);
  EXPECT_FALSE(e.mbu.has_value());
  EXPECT_TRUE(e.mfu.has_value());
  EXPECT_EQ(e.bound, "unknown");
  EXPECT_EQ(e.why, "weights fit the last-level cache");
  EXPECT_DOUBLE_EQ(*floor_ns(200, 500, by), 200);  // FLOPs only
  EXPECT_DOUBLE_EQ(*floor_ns(200, 500, plain()), 500);
}

TEST(Efficiency, FasterThanThePeakIsShownAndSaid) {
  Efficiency e{.flops = 10.0, .bytes = 1500.0};
  complete(e, 1000, plain());
  EXPECT_DOUBLE_EQ(*e.mbu, 1.5);  // never clamped
  EXPECT_THAT(e.why, HasSubstr("faster than the measured peak"));
}

TEST(Efficiency, UnknownIsSaidWhy) {
  Denominators by;
  by.cost_why = "no model";
  Efficiency nothing{.flops_shapes = 100.0};
  complete(nothing, 1000, by);
  EXPECT_EQ(nothing.why, "no model");
  EXPECT_TRUE(nothing.flops_shapes_per_s.has_value());
  Efficiency no_peaks{.flops = 1.0, .bytes = 1.0};
  complete(no_peaks, 1000, {});
  EXPECT_FALSE(no_peaks.mfu || no_peaks.mbu);
  EXPECT_THAT(no_peaks.why, HasSubstr("no peak FLOP/s"));
  EXPECT_THAT(no_peaks.why, HasSubstr("no peak bandwidth"));
}

TEST(Efficiency, ReasonsAreNotRepeated) {
  std::string why;
  add_why(why, "a");
  add_why(why, "b");
  add_why(why, "a");
  add_why(why, "");
  EXPECT_EQ(why, "a; b");
}

TEST(ModelPasses, WhatAStepMustSay) {
  EXPECT_TRUE(pass_of({.batch = 2, .tokens = 3, .context = 3}, "prefill"));
  EXPECT_EQ(pass_of({.batch = 2, .tokens = 3}, "prefill")->sequences[0].context, 3);  // a prompt from its begin
  EXPECT_FALSE(pass_of({.batch = 2, .tokens = 1}, "decode"));                         // its context is not 1
  EXPECT_FALSE(pass_of({.tokens = 1, .context = 5}, "decode"));
  EXPECT_FALSE(pass_of({.batch = 1, .tokens = 1, .context = 1}, "load"));
  EXPECT_EQ(pass_of({.batch = 1, .tokens = 7}, "forward")->kind, model::PassKind::kForward);
  EXPECT_EQ(pass_of({.batch = 1, .tokens = 7}, "backward")->kind, model::PassKind::kBackward);
  EXPECT_FALSE(pass_of({}, "backward"));
  EXPECT_EQ(pass_of({}, "optimizer")->kind, model::PassKind::kOptimizer);  // costs the same whatever the batch was
  EXPECT_EQ(pass_of({.batch = 1, .tokens = 7, .context = 7}, "prefill")->sequences[0].sampled, 1);
}

TEST(ModelPasses, StepsOfOneSizeShareAPass) {
  model::Config config;
  config.family = "llama";
  config.hidden = 4;
  config.vocab = 10;
  set_layers(config, 1, {.attention = {.heads = 2, .kv_heads = 1, .qk_dim = 2, .v_dim = 2}, .mlp = {.width = 8}});
  trace::Strings strings;
  std::vector<Step> steps(3);
  for (Step& step : steps) step.stage = strings.intern("decode");
  steps[0].size = steps[2].size = {.batch = 1, .tokens = 1, .context = 4};
  steps[1].size = {.batch = 1, .tokens = 1};
  const model::Graph graph(config);
  const ModelPasses passes = model_passes(steps, only(graph), 0, {}, strings);
  EXPECT_THAT(passes.pass_of_step, testing::ElementsAre(testing::Optional(1), std::nullopt, testing::Optional(1)));
  double flops = 0;
  for (const trace::ModelOpRow& row : passes.rows) flops += row.flops;
  EXPECT_DOUBLE_EQ(flops, 2 * 144 + 16 * 4 + 80);  // weights, 4 pairs, lm_head: as tests/traces/tiny_decode.cpp derives
}

// Sums of the sequences of a pass: count, new tokens, contexts, pairs of attention.
std::array<std::int64_t, 4> sums(const model::Pass& pass) {
  std::array<std::int64_t, 4> sum{};
  for (const model::Sequences& s : pass.sequences) {
    sum[0] += s.count;
    sum[1] += s.count * s.tokens;
    sum[2] += s.count * s.context;
    sum[3] += s.count * (s.tokens * s.context - s.tokens * (s.tokens - 1) / 2);
  }
  return sum;
}

TEST(ModelPasses, BoundsOfSequencesThatDiffer) {
  const auto bounds = [](StepSize size, std::string_view stage) {
    size.rows = size.rows ? size.rows : size.batch;
    return *bounds_of(size, stage);
  };
  // Prompts of 10 tokens in all: 4, 3, 3 at best; 8, 1, 1 at worst.
  const PassBounds prompts = bounds({.batch = 3, .rows = 10, .contexts = 10, .contexts_most = 10}, "prefill");
  EXPECT_THAT(sums(prompts.alike), testing::ElementsAre(3, 10, 10, 10 + 6 + 6));
  EXPECT_THAT(sums(*prompts.apart), testing::ElementsAre(3, 10, 10, 36 + 1 + 1));
  // One new token each: only the sum of the contexts matters.
  const PassBounds decode = bounds({.batch = 3, .tokens = 1, .contexts = 20, .contexts_most = 20}, "decode");
  EXPECT_THAT(sums(decode.alike), testing::ElementsAre(3, 3, 20, 20));
  EXPECT_THAT(sums(*decode.apart), testing::ElementsAre(3, 3, 20, 20));
  // Two that generate at contexts of 30 together, and one prompt of 5.
  const PassBounds mixed =
      bounds({.batch = 3, .rows = 7, .contexts = 35, .contexts_most = 35, .generating = 2}, "mixed");
  EXPECT_THAT(sums(mixed.alike), testing::ElementsAre(3, 7, 35, 15 + 30));
  EXPECT_THAT(sums(*mixed.apart), testing::ElementsAre(3, 7, 35, 15 + 5 * 28 + 2));
  // Nothing bounds the contexts: what is new at least.
  const PassBounds open = bounds({.batch = 2, .rows = 6, .contexts = 6}, "prefill");
  EXPECT_THAT(sums(open.alike), testing::ElementsAre(2, 6, 6, 12));
  EXPECT_FALSE(open.apart);
  EXPECT_FALSE(bounds_of({.batch = 4, .rows = 3, .contexts = 3}, "prefill"));
  EXPECT_FALSE(bounds_of({.rows = 3, .contexts = 3}, "prefill"));
  EXPECT_FALSE(bounds_of({.batch = 1, .rows = 3, .contexts = 3}, "forward"));
}

// q in all layers, attention in half of them: of a backward pass only, and as much as the way forward costs.
TEST(ModelPasses, ComputedAgain) {
  model::Config config;
  config.family = "llama";
  config.hidden = 4;
  config.vocab = 10;
  set_layers(config, 2, {.attention = {.heads = 2, .kv_heads = 1, .qk_dim = 2, .v_dim = 2}, .mlp = {.width = 8}});
  trace::Strings strings;
  std::vector<Step> steps(2);
  steps[0].stage = strings.intern("forward"), steps[1].stage = strings.intern("backward");
  for (Step& step : steps) step.size = {.batch = 2, .tokens = 3, .context = 3};
  const model::Graph graph(config);
  const ModelPasses passes =
      model_passes(steps, only(graph), 0, {}, strings, {{"self_attn.q_proj", 1.0}, {"self_attn.core", 0.5}});
  std::map<std::int64_t, double> again;
  for (const trace::ModelOpRow& row : passes.rows) again[row.pass_id] += row.recomputed_flops;
  constexpr double kQ = 2 * 6 * 4 * 4, kCore = 2 * 6 * 2 * 2 * 4;  // 6 rows; 2 x 6 pairs, score and value, 4 values
  EXPECT_EQ(again[1], 0);
  EXPECT_EQ(again[2], 2 * (kQ + 0.5 * kCore));
}

TEST(ModelPasses, CostsLieBetweenTheBounds) {
  model::Config config;
  config.family = "llama";
  config.hidden = 4;
  config.vocab = 10;
  set_layers(config, 1, {.attention = {.heads = 2, .kv_heads = 1, .qk_dim = 2, .v_dim = 2}, .mlp = {.width = 8}});
  trace::Strings strings;
  std::vector<Step> steps(3);
  for (Step& step : steps) step.stage = strings.intern("prefill");
  steps[0].size = {.batch = 3, .rows = 10, .contexts = 10, .contexts_most = 10};
  steps[1].size = {.batch = 3, .rows = 10, .contexts = 10, .contexts_most = 10, .pairs = 30};
  steps[2].size = {.batch = 3, .rows = 10, .contexts = 10};
  const model::Graph graph(config);
  const ModelPasses passes = model_passes(steps, only(graph), 0, {}, strings);
  std::map<std::int64_t, std::pair<double, double>> flops;  // by pass
  for (const trace::ModelOpRow& row : passes.rows) {
    flops[row.pass_id].first += row.flops;
    flops[row.pass_id].second += row.flops_most.value_or(0);
  }
  constexpr double kWeights = 10 * 2 * 144 + 3 * 80, kPair = 16;  // products with weights, and of one pair
  EXPECT_EQ(flops[1], std::pair(kWeights + 22 * kPair, kWeights + 38 * kPair));
  EXPECT_EQ(flops[2], std::pair(kWeights + 30 * kPair, kWeights + 30 * kPair));
  EXPECT_EQ(flops[3], std::pair(kWeights + 22 * kPair, 0.0));
}

TEST(AnalysisContext, KeyFollowsWhatTheResultDependsOn) {
  AnalysisContext analysis{.model_text = "a", .devices = {{.cache_bytes = 1}}, .device_ids = {1}};
  const std::string key = analysis.key();
  EXPECT_EQ(analysis.key(), key);
  AnalysisContext other = analysis;
  other.model_text = "b";
  EXPECT_NE(other.key(), key);
  other = analysis;
  other.devices[0].cache_bytes = 2;
  EXPECT_NE(other.key(), key);
  other = analysis;
  other.peaks.push_back({.device_id = 1, .quantity = "flops", .type = "float32", .value = 1});
  EXPECT_NE(other.key(), key);
}

TEST(AnalysisContext, PeaksAreThoseOfTheBusiestDevice) {
  AnalysisContext analysis{.device_ids = {7, 1}};
  analysis.peaks = {{.device_id = 1, .quantity = "flops", .type = "float32", .value = 1},
                    {.device_id = 7, .quantity = "flops", .type = "float64", .value = 2},
                    {.device_id = 7, .quantity = "bandwidth", .type = "read", .value = 3}};
  EXPECT_EQ(analysis.peak("flops", "float32"), nullptr);
  EXPECT_EQ(analysis.peak("flops", "float64")->value, 2);
  EXPECT_EQ(analysis.peak("bandwidth", "")->value, 3);
}

TEST(AnalysisContext, BytesAreMeasuredByTheFastestStreamThroughMemory) {
  AnalysisContext analysis{.devices = {{.kind = "cpu"}}, .device_ids = {7}};
  analysis.peaks = {{7, "bandwidth", "read", 20e9, "measured", ""},
                    {7, "bandwidth", "read, L3", 90e9, "measured", ""},
                    {7, "bandwidth", "triad", 25e9, "measured", ""},
                    {7, "bandwidth", "copy", 24e9, "measured", ""}};
  EXPECT_EQ(*denominators(analysis, "float32", Over::kJob).peak_bandwidth, 25e9);
  EXPECT_EQ(analysis.memory_peak_in_words(7), "triad, the fastest of 3 streams");
  // A triad as fast as the one that was measured is at 100 %, not at 125.
  Efficiency e{.bytes = 25.0};
  complete(e, 1, denominators(analysis, "float32", Over::kJob));
  EXPECT_DOUBLE_EQ(*e.mbu, 1);
  analysis.peaks.resize(1);
  EXPECT_EQ(analysis.memory_peak_in_words(7), "read");
  analysis.peaks[0].source = "spec";
  EXPECT_EQ(analysis.memory_peak_in_words(7), "");
}

TEST(Shapes, ElementBytes) {
  EXPECT_EQ(element_bytes("float32"), 4);
  EXPECT_EQ(element_bytes("bfloat16"), 2);
  EXPECT_FALSE(element_bytes("something"));
}

}  // namespace

}  // namespace llmprof::analyze
