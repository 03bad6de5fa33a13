#include "serving/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmprof::serving {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kGib = 1024.0 * 1024 * 1024;

EngineRules rules_of(std::string_view engine, double gib = 24) {
  const Result<EngineRules> rules = engine_rules(engine, gib * kGib);
  EXPECT_TRUE(rules) << (rules ? "" : rules.error().message);
  return rules ? *rules : EngineRules();
}

TEST(Engine, DefaultsChangeByVersion) {
  EXPECT_EQ(rules_of("vllm@0.19").gpu_memory_utilization, 0.9);
  EXPECT_EQ(rules_of("vllm@0.20").gpu_memory_utilization, 0.92);
  EXPECT_EQ(rules_of("vllm@0.20.0").gpu_memory_utilization, 0.92);
  EXPECT_FALSE(rules_of("vllm@0.13").async_scheduling);
  EXPECT_TRUE(rules_of("vllm@0.14").async_scheduling);
  EXPECT_FALSE(rules_of("vllm@0.18.1").scheduler_reserve_full_isl);
  EXPECT_TRUE(rules_of("vllm@0.19.0").scheduler_reserve_full_isl);
  EXPECT_EQ(rules_of("vllm").version, "0.28");
}

TEST(Engine, EveryVersionIsReadableAndEveryRuleHasASource) {
  for (int minor = 11; minor <= 28; ++minor) {
    const EngineRules rules = rules_of("vllm@0." + std::to_string(minor));
    EXPECT_EQ(rules.block_size, 16);
    EXPECT_EQ(rules.cudagraph_mode, GraphMode::kFullAndPiecewise);
    EXPECT_EQ(rules.watermark, 0);
    EXPECT_GE(rules.sources.size(), 15U);
    for (const RuleSource& each : rules.sources) EXPECT_FALSE(each.source.empty()) << each.key;
    EXPECT_TRUE(check_rules(rules));
  }
  EXPECT_EQ(rules_of("static").scheduler, SchedulerKind::kStatic);
}

TEST(Engine, BatchLimitsFollowTheMemoryOfTheDevice) {
  EXPECT_EQ(rules_of("vllm@0.19", 24).max_num_batched_tokens, 2048);
  EXPECT_EQ(rules_of("vllm@0.19", 24).max_num_seqs, 256);
  EXPECT_EQ(rules_of("vllm@0.19", 80).max_num_batched_tokens, 8192);
  EXPECT_EQ(rules_of("vllm@0.19", 80).max_num_seqs, 1024);
  EXPECT_EQ(rules_of("vllm@0.19", 180).max_num_batched_tokens, 8192);
  EXPECT_EQ(rules_of("vllm@0.28", 180).max_num_batched_tokens, 16384);
  const auto a100 = engine_rules("vllm@0.19", EngineDevice{80 * kGib, "NVIDIA A100-SXM4-80GB", 8});
  ASSERT_TRUE(a100);
  EXPECT_EQ(a100->max_num_batched_tokens, 2048);
}

TEST(Engine, UnknownEnginesAndVersionsSayWhatIsKnown) {
  for (const std::string_view version :
       {"vllm@0.10", "vllm@0.29", "vllm@1", "vllm@0.x", "vllm@-1.2", "vllm@0.19.0.1"}) {
    const auto rules = engine_rules(version, 24 * kGib);
    ASSERT_FALSE(rules) << version;
    EXPECT_THAT(rules.error().hint, HasSubstr("vllm@0.11 to vllm@0.28"));
  }
  const auto unknown = engine_rules("vlm", 24 * kGib);
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().hint, HasSubstr("did you mean vllm?"));
  EXPECT_FALSE(engine_rules("static@1.0", 24 * kGib));
  EXPECT_FALSE(engine_rules("", 24 * kGib));
}

TEST(Engine, SettingsAreCheckedAndNamed) {
  EngineRules rules = rules_of("vllm@0.19");
  EXPECT_TRUE(set_rule(rules, "max_num_seqs=64"));
  EXPECT_TRUE(set_rule(rules, "max-num-batched-tokens = 4096"));
  EXPECT_TRUE(set_rule(rules, "policy=priority"));
  EXPECT_TRUE(set_rule(rules, "enable_prefix_caching=false"));
  EXPECT_TRUE(set_rule(rules, "watermark=0.01"));
  EXPECT_EQ(rules.max_num_seqs, 64);
  EXPECT_EQ(rules.max_num_batched_tokens, 4096);
  EXPECT_EQ(rules.policy, Policy::kPriority);
  EXPECT_FALSE(rules.enable_prefix_caching);
  const auto given = std::find_if(rules.sources.begin(), rules.sources.end(),
                                  [](const RuleSource& each) { return each.key == "max_num_seqs"; });
  ASSERT_NE(given, rules.sources.end());
  EXPECT_EQ(given->source, "given");
  const auto unknown = set_rule(rules, "max_num_seq=64");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().hint, HasSubstr("max_num_seqs"));
  for (const std::string_view wrong :
       {"max_num_seqs=0", "max_num_seqs=many", "max_num_seqs", "policy=lifo", "watermark=1", "gpu_memory_utilization=0",
        "gpu_memory_utilization=nan", "block_size=-16", "async_scheduling=maybe", "max_num_seqs=99999999999999"})
    EXPECT_FALSE(set_rule(rules, wrong)) << wrong;
}

TEST(Engine, SettingsThatExcludeEachOther) {
  EngineRules rules = rules_of("vllm@0.19");
  rules.max_num_batched_tokens = 100;
  EXPECT_FALSE(check_rules(rules));
  rules = rules_of("vllm@0.19");
  rules.enable_chunked_prefill = false;
  rules.max_model_len = 4096;
  EXPECT_FALSE(check_rules(rules));
}

TEST(Engine, CaptureSizes) {
  EngineRules rules = rules_of("vllm@0.19");
  rules.max_num_seqs = 12;
  EXPECT_THAT(rules.capture_sizes(), ElementsAre(1, 2, 4, 8, 16, 24));
  rules.max_num_seqs = 256;
  const std::vector<std::int64_t> sizes = rules.capture_sizes();
  EXPECT_EQ(sizes.size(), 3U + 31 + 17);  // 1 2 4; 8 to 248; 256 to 512
  EXPECT_EQ(sizes.back(), 512);
  EXPECT_EQ(rules_of("vllm@0.11.0").capture_sizes().size(), 3U + 64);  // 8 to 512 by 8
  EXPECT_EQ(rules_of("vllm@0.11").capture_sizes().size(), 51U);        // its last patch release
  const auto blackwell = engine_rules("vllm@0.28", EngineDevice{180 * kGib, "NVIDIA B200", 10});
  ASSERT_TRUE(blackwell);
  EXPECT_EQ(blackwell->capture_sizes().back(), 1024);
  EngineRules small = rules_of("vllm@0.21");
  small.max_num_batched_tokens = 300;
  EXPECT_EQ(small.capture_sizes().back(), 300);
  small.cudagraph_mode = GraphMode::kNone;
  EXPECT_TRUE(small.capture_sizes().empty());
}

TEST(Engine, BlocksAreWhatTheMemoryLeaves) {
  const EngineRules rules = rules_of("vllm@0.19");
  // 0.9 x 100 - 40 - 5 - 1 = 44 bytes; 16 tokens of 0.125 bytes are 2.
  EXPECT_EQ(*kv_blocks(rules, {100, 40, 5, 1, 0.125}), 22);
  const auto weights = kv_blocks(rules, {100, 95, 5, 1, 0.125});
  ASSERT_FALSE(weights);
  EXPECT_THAT(weights.error().message, HasSubstr("the weights alone exceed it"));
  const auto activations = kv_blocks(rules, {100, 85, 10, 1, 0.125});
  ASSERT_FALSE(activations);
  EXPECT_THAT(activations.error().message, HasSubstr("activations and graphs"));
  const auto blocks = kv_blocks(rules, {100, 85, 3, 0, 0.125});
  ASSERT_FALSE(blocks);
  EXPECT_THAT(blocks.error().message, HasSubstr("less than two KV blocks"));
  EXPECT_FALSE(kv_blocks(rules, {100, 40, 5, 1, 0}));
}

}  // namespace
}  // namespace llmprof::serving
