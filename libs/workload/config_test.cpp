#include "workload/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workload/generate.h"
#include "workload/summary.h"

namespace llmprof::workload {
namespace {

using testing::HasSubstr;

std::string error_of(std::string_view json) {
  auto config = parse_config(json, "c.json");
  return config ? "accepted" : config.error().message;
}

TEST(Config, EveryPresetSurvivesItsOwnJson) {
  for (const Preset& preset : presets()) {
    ASSERT_TRUE(complete(preset.config)) << preset.name;
    const std::string json = config_json(preset.config);
    auto parsed = parse_config(json, "preset");
    ASSERT_TRUE(parsed) << preset.name << ": " << parsed.error().message;
    EXPECT_EQ(config_json(*parsed), json);
    EXPECT_TRUE(check_run(preset.config, {preset.batch, preset.prompt_tokens, preset.new_tokens, {}, 0}));
  }
}

TEST(Config, LlamaDefaultsFollowFromTheRest) {
  auto config = parse_config(R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,
                                "intermediate_size":100,"vocab_size":50})",
                             "c.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->kv_heads, 4);
  EXPECT_EQ(config->head_dim, 16);
  EXPECT_FALSE(config->tied_embeddings);
}

TEST(Config, BadOnesNameTheKey) {
  EXPECT_THAT(error_of("[]"), HasSubstr("c.json: top level: not an object"));
  EXPECT_THAT(error_of("{"), HasSubstr("c.json"));
  EXPECT_THAT(error_of("{}"), HasSubstr("model_type: missing"));
  EXPECT_THAT(error_of(R"({"model_type":"mamba"})"), HasSubstr("unknown model family 'mamba'"));
  EXPECT_THAT(error_of(R"({"model_type":"gpt2"})"), HasSubstr("n_layer: missing"));
  EXPECT_THAT(error_of(R"({"model_type":"gpt2","n_layer":"12"})"), HasSubstr("n_layer: not an integer"));
  EXPECT_THAT(error_of(R"({"model_type":"gpt2","n_layer":0})"), HasSubstr("n_layer: 0 is not positive"));
  EXPECT_THAT(error_of(R"({"model_type":"gpt2","n_layer":18446744073709551615})"), HasSubstr("is not positive"));
  EXPECT_THAT(error_of(R"({"model_type":"gpt2","n_layer":2,"n_embd":10,"n_head":4,"vocab_size":9,"n_positions":8})"),
              HasSubstr("hidden size 10 is not a multiple of 4 heads"));
  EXPECT_THAT(
      error_of(R"({"model_type":"gpt2","n_layer":2,"n_embd":9999999,"n_head":1,"vocab_size":9,"n_positions":8})"),
      HasSubstr("hidden is 9999999, allowed are 1 to 131072"));
  EXPECT_THAT(error_of(R"({"model_type":"llama","rope_scaling":{"factor":8}})"), HasSubstr("rope_scaling"));
  EXPECT_THAT(error_of(R"({"model_type":"llama","attention_bias":true})"), HasSubstr("attention_bias"));
}

TEST(Run, LimitsAreChecked) {
  const ModelConfig config = find_preset("tiny-gpt2")->config;  // 128 positions
  EXPECT_TRUE(check_run(config, {.batch = 1, .prompt_tokens = 100, .new_tokens = 28}));
  EXPECT_FALSE(check_run(config, {.batch = 1, .prompt_tokens = 100, .new_tokens = 29}));
  EXPECT_FALSE(check_run(config, {.batch = 0, .prompt_tokens = 10, .new_tokens = 9}));
  EXPECT_FALSE(check_run(config, {.batch = 1, .prompt_tokens = 0, .new_tokens = 9}));
  EXPECT_FALSE(check_run(config, {.batch = 1, .prompt_tokens = INT64_MAX, .new_tokens = INT64_MAX}));
  // The largest of everything: the cache alone would be 2 · 2^12 · 2^16 · 2^24 · 2^12 · 2^12 = 2^77 values.
  const auto largest = complete({.family = Family::kLlama,
                                 .layers = 4096,
                                 .hidden = 1 << 17,
                                 .heads = 4096,
                                 .head_dim = 4096,
                                 .intermediate = 1 << 20,
                                 .vocab = 1 << 24,
                                 .positions = 1 << 24});
  ASSERT_TRUE(largest);
  EXPECT_FALSE(check_run(*largest, {.batch = 1 << 16, .prompt_tokens = 1 << 23, .new_tokens = 1 << 23}));
  EXPECT_FALSE(find_preset("no such thing"));
}

TEST(Summary, PercentilesAreNearestRank) {
  EXPECT_EQ(percentile({}, 0.5), 0);
  EXPECT_EQ(percentile({30, 10, 20}, 0.5), 20);
  EXPECT_EQ(percentile({30, 10, 20, 40}, 0.5), 20);  // 2 of 4 do not exceed it
  EXPECT_EQ(percentile({30, 10, 20, 40}, 0.99), 40);
}

TEST(Summary, TpotIsFromBeginToBegin) {
  const Generated generated{.tokens = {}, .prefill = {100, 250}, .decode = {{300, 310}, {330, 340}, {365, 380}}};
  EXPECT_EQ(ttft_ns(generated), 150);
  EXPECT_EQ(tpot_samples_ns(generated), (std::vector<std::int64_t>{30, 35}));
}

}  // namespace
}  // namespace llmprof::workload
