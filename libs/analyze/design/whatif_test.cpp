#include "analyze/design/whatif.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
