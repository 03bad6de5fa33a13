#include "analyze/design/design.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyze/design/sweep.h"
#include "analyze/design/testing/small_model.h"

namespace llmprof::analyze::design {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// small_llama, decode of one sequence at context 10. Matrices of a layer: q and o 64·64, k and v 64·32, gate, up and
// down 64·128: 36,864. Two layers and the logits (64·256): 90,112 multiply-adds. Attention: 4 heads, 16 + 16 values, 10
// keys, 2 layers: 2,560 multiply-adds.
constexpr double kDecodeFlops = 2.0 * (2 * 36'864 + 16'384 + 2'560);

TEST(Design, CostsMemoryAndSpeeds) {
  const Design design = must(make_design(small_llama(), {.batch = 1, .prompt = 8, .context = 10}, small_roof()));
  // Embedding and logits 2·16,384, layers 2·(36,864 + two norms of 64), last norm 64.
  EXPECT_EQ(design.parameters, 106'816);
  EXPECT_EQ(design.active_parameters, 106'816);
  const Stage* decode = design.stage("decode");
  ASSERT_NE(decode, nullptr);
  EXPECT_DOUBLE_EQ(decode->costs.flops, kDecodeFlops);
  EXPECT_DOUBLE_EQ(*decode->floor.compute_ns, kDecodeFlops / 1e12 * 1e9);
  EXPECT_DOUBLE_EQ(*decode->floor.memory_ns, decode->costs.bytes() / 1e10 * 1e9);
  EXPECT_EQ(decode->floor.bound(), "memory");
  EXPECT_DOUBLE_EQ(*decode->ridge, 1e12 / 1e10);
  EXPECT_DOUBLE_EQ(*design.speeds.tpot_ns, *decode->floor.memory_ns);
  EXPECT_DOUBLE_EQ(*design.speeds.tokens_per_s_per_sequence, 1e9 / *decode->floor.memory_ns);
  EXPECT_DOUBLE_EQ(design.memory.weights, 2.0 * 106'816);
  EXPECT_DOUBLE_EQ(design.memory.kv_per_token, 2.0 * 2 * 2 * 16 * 2);  // layers, K and V, heads, values, bytes
  EXPECT_DOUBLE_EQ(design.memory.kv, 10 * 256.0);
}

TEST(Design, RowsAddUpToTheStage) {
  const Design design = must(make_design(small_llama(), {.batch = 3, .prompt = 8, .context = 10}, small_roof()));
  for (const Stage& stage : design.stages) {
    for (const std::vector<Row>* rows : {&stage.operators, &stage.layers}) {
      model::Costs sum;
      for (const Row& row : *rows) sum += row.costs;
      EXPECT_NEAR(sum.flops, stage.costs.flops, 1e-6 * stage.costs.flops);
      EXPECT_NEAR(sum.bytes(), stage.costs.bytes(), 1e-6 * stage.costs.bytes());
    }
  }
  std::vector<std::string> names;
  for (const Row& row : design.stages.front().layers) names.push_back(row.name);
  EXPECT_THAT(names, ElementsAre("before layers", "layers 0-1", "after layers"));
}

TEST(Design, FitsAsLongAsThereIsMemory) {
  Roof roof = small_roof();
  const Options options{.batch = 1, .prompt = 8, .context = 10};
  const Memory now = must(make_design(small_llama(), options, roof)).memory;
  roof.memory_bytes = now.weights + now.activations + 100 * now.kv_per_token;
  const Memory full = must(make_design(small_llama(), options, roof)).memory;
  EXPECT_TRUE(*full.fits);
  EXPECT_EQ(*full.longest_context, 100);
  EXPECT_DOUBLE_EQ(*full.left_for_kv, 100 * now.kv_per_token);
  EXPECT_FALSE(full.context_ends_with_model);
  roof.memory_bytes = 1e12;  // more than 4096 positions need
  const Memory roomy = must(make_design(small_llama(), options, roof)).memory;
  EXPECT_EQ(*roomy.longest_context, 4096);
  EXPECT_TRUE(roomy.context_ends_with_model);
  roof.memory_bytes = now.weights / 2;
  const Memory cramped = must(make_design(small_llama(), options, roof)).memory;
  EXPECT_FALSE(*cramped.fits);
  EXPECT_EQ(*cramped.longest_context, 0);
  EXPECT_EQ(*cramped.largest_batch, 0);
}

TEST(Design, LargestBatchIsTheLastThatFits) {
  Roof roof = small_roof();
  roof.memory_bytes = 1e6;
  const Options options{.batch = 1, .prompt = 8, .context = 10};
  const std::int64_t batch = *must(make_design(small_llama(), options, roof)).memory.largest_batch;
  ASSERT_GT(batch, 1);
  Options at = options;
  at.batch = batch;
  EXPECT_TRUE(*must(make_design(small_llama(), at, roof)).memory.fits);
  at.batch = batch + 1;
  EXPECT_FALSE(*must(make_design(small_llama(), at, roof)).memory.fits);
}

TEST(Design, WithoutADeviceCostsAreKnownAndTimesAreNot) {
  Roof none;
  none.why = "no device";
  const Design design = must(make_design(small_llama(), {.prompt = 8, .context = 10}, none));
  EXPECT_DOUBLE_EQ(design.stage("decode")->costs.flops, kDecodeFlops);
  EXPECT_FALSE(design.stage("decode")->floor.ns);
  EXPECT_EQ(design.stage("decode")->floor.bound(), "unknown");
  EXPECT_FALSE(design.speeds.tpot_ns);
  EXPECT_FALSE(design.memory.fits);
  EXPECT_THAT(design.caveats, Contains("no device"));
}

TEST(Design, SaysWhatTheConfigLeavesOut) {
  Subject subject = small_llama();
  subject.config.notes.push_back({"vision_config", "not analysed"});
  EXPECT_THAT(must(make_design(subject, {}, small_roof())).notes, Contains("vision_config: not analysed"));
}

TEST(Design, DefaultsComeFromTheModel) {
  const Design design = must(make_design(small_llama(), {}, small_roof()));
  EXPECT_EQ(design.options.prompt, 1024);
  EXPECT_EQ(design.options.context, 1024);
  Subject shorter = small_llama();
  shorter.config.positions = 100;
  EXPECT_EQ(must(make_design(shorter, {}, small_roof())).options.prompt, 100);
  const Design longer = must(make_design(shorter, {.prompt = 101}, small_roof()));
  EXPECT_THAT(longer.caveats, Contains(HasSubstr("101 tokens are more than the 100 positions")));
  EXPECT_FALSE(make_design(small_llama(), {.batch = -1}, small_roof()));
}

TEST(Design, ShardsOfATensorParallelModelAddUp) {
  const Options whole{.prompt = 8, .context = 10};
  Options half = whole;
  half.parallel.tensor = 2;
  const Design one = must(make_design(small_llama(), whole, small_roof()));
  const Design two = must(make_design(small_llama(), half, small_roof()));
  EXPECT_EQ(two.devices, 2);
  EXPECT_DOUBLE_EQ(2 * two.stage("decode")->costs.flops, one.stage("decode")->costs.flops);
  EXPECT_GT(two.stage("decode")->communication_bytes, 0);
  EXPECT_EQ(two.parameters, one.parameters);
  Options staged = whole;
  staged.parallel.pipeline = 2;
  const Design pipeline = must(make_design(small_llama(), staged, small_roof()));
  EXPECT_DOUBLE_EQ(pipeline.stage("decode")->costs.flops, one.stage("decode")->costs.flops);
  EXPECT_LT(pipeline.memory.weights, one.memory.weights);
  // One token takes both stages; with a batch in each, tokens leave at the pace of the slower one.
  const Stage& decode = *pipeline.stage("decode");
  ASSERT_EQ(decode.pipeline.size(), 2u);
  EXPECT_DOUBLE_EQ(*pipeline.speeds.tpot_ns, *decode.pipeline[0].ns + *decode.pipeline[1].ns);
  EXPECT_DOUBLE_EQ(*pipeline.speeds.tokens_per_s, 1e9 / std::max(*decode.pipeline[0].ns, *decode.pipeline[1].ns));
  const Sweep same = must(sweep(small_llama(), staged, small_roof(), {{"batch", {1}}}));
  EXPECT_DOUBLE_EQ(*same.points[0].tokens_per_s, *pipeline.speeds.tokens_per_s);
}

TEST(Design, TrainingHasItsOwnStagesAndMemory) {
  const Design design = must(make_design(small_llama(), {.batch = 2, .prompt = 8, .train = true}, small_roof()));
  ASSERT_EQ(design.stages.size(), 3u);
  ASSERT_TRUE(design.training);
  EXPECT_DOUBLE_EQ(design.training->flops, design.stages[0].costs.flops + design.stages[1].costs.flops);
  EXPECT_DOUBLE_EQ(design.training->memory.moments, 8.0 * 106'816);
  EXPECT_DOUBLE_EQ(*design.training->step_ns,
                   *design.stages[0].floor.ns + *design.stages[1].floor.ns + *design.stages[2].floor.ns);
  EXPECT_FALSE(design.speeds.tpot_ns);
}

TEST(Types, NarrowWeightsAreThoseOfTheLayersMatrices) {
  Subject subject = small_llama();
  ASSERT_TRUE(
      model::set_types(subject.config, {.weights = "int4", .kv = "float8", .activations = "", .arithmetic = ""}));
  const Design design = must(make_design(subject, {.prompt = 8, .context = 10}, small_roof()));
  // Two layers' matrices at half a byte; embedding, logits and norms at two.
  EXPECT_DOUBLE_EQ(design.memory.weights, 2 * 36'864 * 0.5 + (2 * 16'384 + 5 * 64) * 2.0);
  EXPECT_DOUBLE_EQ(design.memory.kv_per_token, 128);
  EXPECT_THAT(model::set_types(subject.config, {.weights = "float33"}).error().message, HasSubstr("float33"));
}

TEST(Types, ProductsOfTwoTypesTakeTheirOwnPeaks) {
  Subject subject = small_llama();
  ASSERT_TRUE(model::set_types(subject.config, {.weights = "float8"}));
  Roof roof = small_roof();
  roof.peaks.push_back({"flops", "float8", 2e12, "FLOP/s", "spec", ""});
  const Design design = must(make_design(subject, {.prompt = 8, .context = 10}, roof));
  const Stage& decode = *design.stage("decode");
  // The layers' matrices in float8 at 2e12, logits and attention in bfloat16 at 1e12.
  const double narrow = 2.0 * 2 * 36'864, wide = 2.0 * (16'384 + 2'560);
  EXPECT_DOUBLE_EQ(*decode.floor.compute_ns, (narrow / 2e12 + wide / 1e12) * 1e9);
  EXPECT_DOUBLE_EQ(*decode.ridge, decode.costs.flops / (narrow / 2e12 + wide / 1e12) / 1e10);
}

TEST(Roof, StandsInForATypeThatTheDeviceHasNot) {
  Roof roof{.device = "T4", .source = "catalogue", .memory_bytes = 0, .on_chip_bytes = 0, .peaks = {}, .why = ""};
  roof.peaks = {{"flops", "float16", 65e12, "FLOP/s", "spec", ""}, {"flops", "float32", 8e12, "FLOP/s", "spec", ""}};
  const std::optional<UsedPeak> peak = hw::flops_peak(roof.peaks, "bfloat16", roof.device);
  ASSERT_TRUE(peak);
  EXPECT_EQ(peak->peak_type, "float32");
  EXPECT_EQ(peak->note, "T4 has no peak for bfloat16; it would run as float32");
  EXPECT_EQ(hw::flops_peak(roof.peaks, "float8_e4m3", roof.device)->peak_type, "float16");
  EXPECT_FALSE(hw::flops_peak(roof.peaks, "float64", roof.device));
  EXPECT_FALSE(hw::bandwidth_peak(roof.peaks));
}

TEST(Roof, MeasuredPeaksComeFirst) {
  Roof roof;
  roof.peaks = {{"bandwidth", "read", 3e12, "B/s", "spec", ""}, {"bandwidth", "read", 2e12, "B/s", "measured", ""}};
  EXPECT_EQ(hw::bandwidth_peak(roof.peaks)->per_second, 2e12);
}

TEST(Stage, NumbersOfLayers) {
  EXPECT_EQ(layer_numbers({0, 1, 2, 3}), "0-3");
  EXPECT_EQ(layer_numbers({0, 2, 3, 5}), "0,2-3,5");
  EXPECT_EQ(layer_numbers({0, 2, 4, 6, 8, 10, 12}), "0,2,4,6,8,10,…");
}

TEST(Measured, EfficiencyFromTokensPerSecond) {
  const Design design = must(make_design(small_llama(), {.batch = 4, .prompt = 8, .context = 10}, small_roof()));
  const std::vector<Reached> rows = must(reached(design, {.tokens_per_s = 1000}));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_DOUBLE_EQ(rows[0].time_ns, 4e6);  // 4 sequences, 1000 tokens/s: a pass takes 4 ms
  EXPECT_DOUBLE_EQ(*rows[0].mfu, 4 * kDecodeFlops / 4e-3 / 1e12);
  EXPECT_DOUBLE_EQ(*rows[0].mbu, design.stage("decode")->costs.bytes() / 4e-3 / 1e10);
  EXPECT_DOUBLE_EQ(*rows[0].floor_share, *design.stage("decode")->floor.ns / 4e6);
  EXPECT_FALSE(reached(design, {.tokens_per_s = -1}));
  Roof roof = small_roof();
  roof.on_chip_bytes = 1 << 20;  // more than the weights
  const Design cached = must(make_design(small_llama(), {.batch = 4, .prompt = 8, .context = 10}, roof));
  EXPECT_FALSE(must(reached(cached, {.tokens_per_s = 1000}))[0].mbu);
  EXPECT_THAT(must(reached(cached, {.tokens_per_s = 1000}))[0].why, HasSubstr("no MBU"));
  EXPECT_THAT(cached.caveats, Contains(HasSubstr("fit the last-level cache")));
  EXPECT_THAT(must(reached(design, {.tpot_ns = 1}))[0].why, HasSubstr("above the peak"));
}

TEST(Measured, TrainingCountsWhatIsComputedAgainApart) {
  const Options options{.batch = 2, .prompt = 8, .train = true, .recompute = model::Recompute::kLayers};
  const Design design = must(make_design(small_llama(), options, small_roof()));
  const Reached row = must(reached(design, {.tokens_per_s = 100}))[0];
  EXPECT_DOUBLE_EQ(row.time_ns, 16.0 / 100 * 1e9);
  EXPECT_DOUBLE_EQ(*row.mfu, design.training->flops / 0.16 / 1e12);
  EXPECT_DOUBLE_EQ(*row.hfu, (design.training->flops + design.training->recomputed_flops) / 0.16 / 1e12);
  EXPECT_GT(*row.hfu, *row.mfu);
  EXPECT_FALSE(reached(design, {.tpot_ns = 1e6}));
}

TEST(Sweep, EveryPointIsTheDesignUnderItsConditions) {
  const Options options{.batch = 1, .prompt = 8, .context = 10};
  const Sweep grid = must(sweep(small_llama(), options, small_roof(), {{"batch", {1, 4}}, {"context", {10, 20, 30}}}));
  ASSERT_EQ(grid.points.size(), 6u);
  const SweepPoint& point = grid.points[4];
  EXPECT_EQ(point.load.batch, 4);
  EXPECT_EQ(point.load.context, 20);
  const Design same = must(make_design(small_llama(), {.batch = 4, .prompt = 8, .context = 20}, small_roof()));
  EXPECT_DOUBLE_EQ(*point.decode.floor.ns, *same.speeds.tpot_ns);
  EXPECT_DOUBLE_EQ(*point.first.floor.ns, *same.speeds.ttft_ns);
  EXPECT_DOUBLE_EQ(*point.tokens_per_s, *same.speeds.tokens_per_s);
  EXPECT_DOUBLE_EQ(point.memory_bytes, same.memory.needed());
}

TEST(Sweep, RefusesWhatItCannotDo) {
  const auto message = [](const Options& options, std::vector<base::Axis> axes) {
    return sweep(small_llama(), options, small_roof(), std::move(axes)).error().message;
  };
  EXPECT_THAT(message({}, {{"layers", {1}}}), HasSubstr("'layers'"));
  EXPECT_THAT(message({}, {{"batch", {0}}}), HasSubstr("between 1 and"));
  EXPECT_THAT(message({.train = true}, {{"context", {1}}}), HasSubstr("'context'"));
  const std::vector<std::int64_t> many(2000, 1);
  EXPECT_THAT(message({}, {{"batch", many}, {"context", many}}), HasSubstr("4000000 points"));
}

TEST(Diff, PutsQuantitiesSideBySide) {
  Subject wide = small_llama();
  ASSERT_TRUE(model::set_types(wide.config, {.weights = "float32"}));
  const Options options{.prompt = 8, .context = 10};
  const std::vector<DiffRow> rows =
      diff(must(make_design(small_llama(), options, small_roof())), must(make_design(wide, options, small_roof())));
  const auto ratio = [&](std::string_view part, std::string_view name) {
    for (const DiffRow& row : rows) {
      if (row.part == part && row.name == name) return row.ratio().value_or(-1);
    }
    return -2.0;
  };
  EXPECT_DOUBLE_EQ(ratio("model", "parameters"), 1);
  EXPECT_DOUBLE_EQ(ratio("memory", "weights"), 2);
  EXPECT_DOUBLE_EQ(ratio("memory", "KV cache per token"), 2);
  EXPECT_DOUBLE_EQ(ratio("decode", "FLOPs"), 1);
}

}  // namespace
}  // namespace llmprof::analyze::design
