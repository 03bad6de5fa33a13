#include "analyze/design/whatif.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyze/design/whatif_sweep.h"
#include "model/zoo/zoo.h"

namespace llmprof::analyze::design {
namespace {

using testing::HasSubstr;

ModelSetup llama() {
  ModelSetup out;
  out.subject.config = *model::config_of(*model::find_in_zoo("llama-3.1-8b"));
  out.options.batch = 4, out.options.prompt = 512, out.options.context = 1024;
  out.roof.device = "test", out.roof.memory_bytes = 80e9;
  out.roof.peaks = {{"flops", "bfloat16", 1e15, "FLOP/s", "spec", ""}, {"bandwidth", "read", 3e12, "B/s", "spec", ""}};
  return out;
}

Design design_of(const ModelSetup& setup) {
  auto made = make_design(setup.subject, setup.options, setup.roof);
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

TEST(WhatIf, HalfTheKeyValueHeadsAreHalfTheCache) {
  const Design before = design_of(llama());
  ModelSetup changed = llama();
  ASSERT_TRUE(set(changed, "kv_heads=4"));
  const Design after = design_of(changed);
  EXPECT_DOUBLE_EQ(after.memory.kv_per_token, before.memory.kv_per_token / 2);
  EXPECT_LT(*after.speeds.tpot_ns, *before.speeds.tpot_ns);
}

TEST(WhatIf, SettingsThatCannotBeSayWhy) {
  ModelSetup setup = llama();
  EXPECT_THAT(set(setup, "kv_head=4").error().hint, HasSubstr("kv_heads"));
  EXPECT_THAT(set(setup, "kv_heads=5").error().message, HasSubstr("evenly"));
  EXPECT_THAT(set(setup, "kv_heads").error().message, HasSubstr("KEY=VALUE"));
  EXPECT_THAT(set(setup, "layers=0").error().message, HasSubstr("not a number from 1"));
  EXPECT_FALSE(set(setup, "dtype=float99"));
  EXPECT_FALSE(set(setup, "layers=99999999"));
}

// 10 ms measured, half of it busy; the floor falls from 2 to 1 ms. Only the floor: 9 ms. All that the device does: 7.5.
TEST(WhatIf, ARangeFromTheFloorsOwnTimeToAllOfTheDevices) {
  Design before, after;
  before.stages.resize(1), after.stages.resize(1);
  before.stages[0].name = after.stages[0].name = "decode";
  before.stages[0].floor.ns = 2e6, after.stages[0].floor.ns = 1e6;
  const auto stages = expected(before, after, {{"decode", 10e6, 0.5}, {"prefill", 1e6, 1.0}});
  ASSERT_EQ(stages.size(), 1U);
  EXPECT_DOUBLE_EQ(stages[0].least_ns, 7.5e6);
  EXPECT_DOUBLE_EQ(stages[0].most_ns, 9e6);
  // The other way: from 11 to 15 ms.
  const auto slower = expected(after, before, {{"decode", 10e6, 0.5}});
  EXPECT_DOUBLE_EQ(slower[0].least_ns, 11e6);
  EXPECT_DOUBLE_EQ(slower[0].most_ns, 15e6);
  // Never below the new floor.
  EXPECT_DOUBLE_EQ(expected(before, after, {{"decode", 1.5e6, 1.0}})[0].least_ns, 1e6);
}

Priced priced(Source source, double decode_ns, double least = 1, double most = 1) {
  Priced out{.source = source};
  out.stages.push_back({"decode", decode_ns, least, most});
  return out;
}

Design with_floor(double ns) {
  Design out;
  out.stages.resize(1);
  out.stages[0].name = "decode";
  out.stages[0].floor.ns = ns;
  return out;
}

// 10 ms measured, predicted 8, and 4 with the change: 5. The prediction is off by a factor of 1.25, and with the change
// it may be 10 % shorter or longer: 5 / 1.25 x 0.9 to 5 x 1.25 x 1.1.
TEST(WhatIf, TheRatioOfPredictionsIsAppliedToWhatWasMeasured) {
  const std::pair both{priced(Source::kTables, 8e6), priced(Source::kTables, 4e6, 0.9, 1.1)};
  const auto rows = expected(with_floor(2e6), with_floor(1e6), {{"decode", 10e6, 1.0}}, both);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_DOUBLE_EQ(*rows[0].ratio, 0.5);
  EXPECT_NEAR(*rows[0].error, -0.2, 1e-12);
  EXPECT_DOUBLE_EQ(*rows[0].expected_ns, 5e6);
  EXPECT_DOUBLE_EQ(rows[0].least_ns, 3.6e6);
  EXPECT_DOUBLE_EQ(rows[0].most_ns, 6.875e6);
  EXPECT_EQ(rows[0].by, "operator tables");
  // Never below the new floor; where the run beats its floor, not below as much of it.
  EXPECT_DOUBLE_EQ(expected(with_floor(8e6), with_floor(4e6), {{"decode", 10e6, 1.0}}, both)[0].least_ns, 4e6);
  EXPECT_DOUBLE_EQ(expected(with_floor(20e6), with_floor(10e6), {{"decode", 10e6, 1.0}}, both)[0].least_ns, 5e6);
  // What the floor forbids is moved to the floor, with as wide a range above it: 8 x 1.25 x 1.1.
  const auto moved = expected(with_floor(9e6), with_floor(8e6), {{"decode", 10e6, 1.0}}, both);
  EXPECT_DOUBLE_EQ(*moved[0].expected_ns, 8e6);
  EXPECT_DOUBLE_EQ(moved[0].most_ns, 11e6);
}

// Predictions of the device alone are held against the device's part: of 10 ms 8 are busy, 2 stay.
TEST(WhatIf, IdleTimeIsNotScaled) {
  const std::pair both{priced(Source::kTables, 8e6), priced(Source::kTables, 4e6)};
  const auto rows = expected(with_floor(2e6), with_floor(1e6), {{"decode", 10e6, 0.8}}, both);
  EXPECT_NEAR(*rows[0].error, 0, 1e-12);
  EXPECT_DOUBLE_EQ(*rows[0].expected_ns, 6e6);
  // With the host's time in it, all of the step is scaled.
  std::pair whole = both;
  whole.first.with_host = whole.second.with_host = true;
  EXPECT_DOUBLE_EQ(*expected(with_floor(2e6), with_floor(1e6), {{"decode", 10e6, 0.8}}, whole)[0].expected_ns, 5e6);
}

// 8 ms predicted of 5 ms measured: 1.6 times as long. The range is that of the floors, the error is told.
TEST(WhatIf, ARatioOfFarPredictionsIsNotApplied) {
  const std::pair both{priced(Source::kTables, 8e6), priced(Source::kTables, 4e6)};
  const auto rows = expected(with_floor(2e6), with_floor(1e6), {{"decode", 5e6, 1.0}}, both);
  EXPECT_NEAR(*rows[0].error, 0.6, 1e-12);
  EXPECT_DOUBLE_EQ(*rows[0].ratio, 0.5);
  EXPECT_FALSE(rows[0].expected_ns);
  EXPECT_DOUBLE_EQ(rows[0].least_ns, 2.5e6);
  EXPECT_DOUBLE_EQ(rows[0].most_ns, 4e6);
  EXPECT_EQ(rows[0].by, "floor");
}

// Prices of a setup by its batch: up to 8 by the program, up to 16 by tables, else by floors.
Result<Priced> by_batch(const ModelSetup& setup, Source at_most) {
  const std::int64_t batch = setup.options.batch;
  const Source best = batch <= 8 ? Source::kProgram : batch <= 16 ? Source::kTables : Source::kFloor;
  const Source source = std::min(best, at_most);
  Priced out = priced(source, 100.0 * static_cast<double>(batch) + static_cast<double>(source));
  out.memory_bytes = static_cast<double>(batch), out.device_bytes = 10;
  return out;
}

TEST(WhatIf, BothSidesArePricedByTheSameSource) {
  ModelSetup a = llama(), b = llama();
  for (const auto& [first, second, source] : {std::tuple{4, 8, Source::kProgram}, std::tuple{4, 16, Source::kTables},
                                              std::tuple{16, 4, Source::kTables}, std::tuple{32, 4, Source::kFloor}}) {
    a.options.batch = first, b.options.batch = second;
    const auto both = price_both(by_batch, a, b);
    ASSERT_TRUE(both);
    EXPECT_EQ(both->first.source, source);
    EXPECT_EQ(both->second.source, source);
    EXPECT_EQ(both->second.stages[0].ns, 100.0 * second + static_cast<double>(source));
  }
}

TEST(WhatIf, ASweepIsPricedByOneSource) {
  const auto sweep = sweep_changes(llama(), nullptr, "", {{"batch", {4, 16}}}, by_batch);
  ASSERT_TRUE(sweep) << sweep.error().message;
  EXPECT_EQ(sweep->source, Source::kTables);
  ASSERT_EQ(sweep->lines.size(), 1U);
  EXPECT_EQ(sweep->lines[0].name, "as it is");
  EXPECT_EQ(*sweep->lines[0].points[0].tpot_ns, 401);
  EXPECT_EQ(*sweep->lines[0].points[1].tpot_ns, 1601);
  EXPECT_TRUE(*sweep->lines[0].points[0].fits);
  EXPECT_FALSE(*sweep->lines[0].points[1].fits);
}

TEST(WhatIf, LinesOfASweep) {
  ModelSetup changed = llama();
  ASSERT_TRUE(set(changed, "dtype=float8"));
  const auto one = sweep_changes(llama(), &changed, "dtype=float8", {{"kv_heads", {1, 2, 3, 4}}});
  ASSERT_TRUE(one);
  ASSERT_EQ(one->lines.size(), 2U);
  EXPECT_EQ(one->lines[1].name, "dtype=float8");
  EXPECT_EQ(one->lines[1].points.size(), 3U);  // 32 heads do not share 3
  ASSERT_EQ(one->left_out.size(), 1U);
  EXPECT_THAT(one->left_out[0], HasSubstr("kv_heads=3"));
  // The size that is swept is the design's own at that size.
  ModelSetup four = changed;
  ASSERT_TRUE(set(four, "kv_heads=4"));
  EXPECT_DOUBLE_EQ(*one->lines[1].points[2].tpot_ns, *design_of(four).speeds.tpot_ns);

  const auto two = sweep_changes(llama(), &changed, "dtype=float8", {{"kv_heads", {4, 8}}, {"batch", {1, 2, 4}}});
  ASSERT_TRUE(two);
  ASSERT_EQ(two->lines.size(), 2U);
  EXPECT_EQ(two->lines[0].name, "kv_heads=4");
  EXPECT_DOUBLE_EQ(*two->lines[0].points[2].tpot_ns, *design_of(four).speeds.tpot_ns);

  EXPECT_THAT(sweep_changes(llama(), nullptr, "", {{"bach", {1}}}).error().hint, HasSubstr("batch"));
  EXPECT_FALSE(sweep_changes(llama(), nullptr, "", {{"batch", {1}}, {"prompt", {1}}, {"context", {1}}}));
  EXPECT_THAT(sweep_changes(llama(), nullptr, "", {{"kv_heads", {3, 5}}}).error().message, HasSubstr("evenly"));
}

// One more head alone would not share 8 key-value heads evenly: an eighth of 8 more.
TEST(WhatIf, OneHeadMoreIsAPartOfTheNextNumberThatCanBe) {
  const auto all = gradients(llama());
  ASSERT_TRUE(all);
  const auto heads = std::ranges::find(*all, "1 query head more", &Gradient::what);
  const auto kv = std::ranges::find(*all, "1 key-value head more", &Gradient::what);
  ASSERT_NE(heads, all->end());
  ASSERT_NE(kv, all->end());
  EXPECT_EQ(heads->setting, "heads=40");
  EXPECT_EQ(heads->parts, 8);
  EXPECT_EQ(kv->setting, "kv_heads=16");
  EXPECT_EQ(kv->parts, 8);
  // In each of 32 layers: keys and values of 4 x 1024 tokens, and 4096 x 128 weights of each; 2 bytes. What the
  // activations of a layer need changes, too, by less than 1 MB.
  EXPECT_NEAR(kv->memory_bytes, 32.0 * 2 * 2 * (4 * 1024 * 128 + 4096 * 128), 2e6);
  // 2 x 4096 x 128 multiply-adds for each of 4 rows: keys and values.
  EXPECT_DOUBLE_EQ(kv->decode_flops, 32.0 * 2 * 2 * 4096 * 128 * 4);
}

TEST(WhatIf, GradientsAreDifferencesOfDesigns) {
  const auto all = gradients(llama());
  ASSERT_TRUE(all);
  const auto layer = std::ranges::find(*all, "1 layer more", &Gradient::what);
  ASSERT_NE(layer, all->end());
  const Design base = design_of(llama());
  ModelSetup more = llama();
  ASSERT_TRUE(set(more, "layers=33"));
  EXPECT_DOUBLE_EQ(*layer->tpot_ns, *design_of(more).speeds.tpot_ns - *base.speeds.tpot_ns);
  EXPECT_GT(*layer->tpot_ns, 0);
  const auto batch = std::ranges::find(*all, "twice the batch", &Gradient::what);
  EXPECT_GT(*batch->tokens_per_s, 0);
  EXPECT_GT(batch->memory_bytes, 0);
}

}  // namespace
}  // namespace llmprof::analyze::design
