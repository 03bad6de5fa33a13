#include "model/shard.h"

#include <gtest/gtest.h>

#include <map>

#include "model/memory.h"
#include "model/testing/tiny.h"

namespace llmprof::model {
namespace {

// 8 heads, 4 kv heads of 4, hidden 16, MLP 24; two dense layers and two of 6 experts.
Config sample() {
  Config config;
  config.family = "llama";
  config.hidden = 16;
  config.vocab = 48;
  const Attention attention{.heads = 8, .kv_heads = 4, .qk_dim = 4, .v_dim = 4};
  const Mlp experts{.width = 12, .experts = 6, .experts_per_token = 2, .shared_width = 8};
  for (const Mlp& mlp : {Mlp{.width = 24}, Mlp{.width = 24}, experts, experts}) add_layer(config, {attention, mlp});
  return config;
}

Config part(const Config& config, const Parallel& parallel, const Rank& rank) {
  Result<Config> shard_config = shard(config, parallel, rank);
  EXPECT_TRUE(shard_config) << shard_config.error().message;
  return *shard_config;
}

// By module: what all ranks have together.
std::map<std::string, Costs> over_ranks(const Config& config, const Parallel& parallel, const Pass& pass) {
  std::map<std::string, Costs> sums;
  const std::int64_t tensor = std::max(parallel.tensor, parallel.expert);
  for (std::int64_t p = 0; p < parallel.pipeline; ++p) {
    for (std::int64_t t = 0; t < tensor; ++t) {
      const Rank rank{.tensor = t % parallel.tensor, .pipeline = p, .expert = t * parallel.expert / tensor};
      for (const OpCost& cost : analyze(Graph(part(config, parallel, rank)), pass, {})) sums[cost.module] += cost;
    }
  }
  return sums;
}

bool replicated(const std::string& module) {
  return module.find("norm") != std::string::npos || module.ends_with("mlp.gate");
}

void expect_sums(const Config& config, const Parallel& parallel) {
  for (const Pass& pass : {prefill(2, 5), decode(3, 9), train(PassKind::kBackward, 1, 6)}) {
    std::map<std::string, Costs> sums = over_ranks(config, parallel, pass);
    const double copies = static_cast<double>(std::max(parallel.tensor, parallel.expert));
    for (const OpCost& whole : analyze(Graph(config), pass, {})) {
      const double expected = replicated(whole.module) ? copies : 1;
      EXPECT_NEAR(sums[whole.module].flops, whole.flops * expected, 1e-6 * whole.flops) << whole.module;
      if (whole.op == "embed_tokens") continue;  // rows that are looked up: a share of each, never beyond the table
      EXPECT_NEAR(sums[whole.module].weight_bytes, whole.weight_bytes * expected, 1e-6 * whole.weight_bytes)
          << whole.module;
      EXPECT_NEAR(sums[whole.module].kv_bytes, whole.kv_bytes, 1e-6 * whole.kv_bytes) << whole.module;
    }
  }
}

TEST(Shard, RanksSumToTheWhole) {
  expect_sums(sample(), {});
  expect_sums(sample(), {.tensor = 2});
  expect_sums(sample(), {.tensor = 4});
  expect_sums(sample(), {.tensor = 3});    // 8 heads: 2, 3, 3; 4 kv heads: 1, 1, 2
  expect_sums(sample(), {.pipeline = 3});  // 4 layers: 1, 1, 2
  expect_sums(sample(), {.tensor = 2, .pipeline = 4});
  expect_sums(sample(), {.tensor = 3, .expert = 3});
  expect_sums(sample(), {.tensor = 4, .expert = 2});
}

TEST(Shard, ParametersSumToTheWholeButForWhatIsOnEveryRank) {
  const Config config = sample();
  std::int64_t sum = 0;
  for (std::int64_t t = 0; t < 2; ++t) sum += parameters(Graph(part(config, {.tensor = 2}, {.tensor = t})));
  // Twice: 9 norms of 16, and the routers 16·6 of two layers.
  EXPECT_EQ(sum, parameters(Graph(config)) + 9 * 16 + 2 * 16 * 6);
}

TEST(Shard, KvHeadsAreCopiedWhenThereAreFewerThanRanks) {
  const Config eighth = part(sample(), {.tensor = 8}, {.tensor = 3});
  EXPECT_EQ(eighth.kinds[0].attention.heads, 1);
  EXPECT_EQ(eighth.kinds[0].attention.kv_heads, 1);
  EXPECT_EQ(kv_bytes_per_token(Graph(eighth)) * 8, 2 * kv_bytes_per_token(Graph(sample())));
}

TEST(Shard, PipelineStagesKeepTheNumbersOfTheirLayers) {
  const Config second = part(sample(), {.pipeline = 2}, {.pipeline = 1});
  const std::vector<OpCost> costs = analyze(Graph(second), decode(1, 1), {});
  EXPECT_EQ(costs.front().module, "layers.2.input_layernorm");
  EXPECT_EQ(costs.back().module, "sampling");
  const Config first = part(sample(), {.pipeline = 2}, {.pipeline = 0});
  EXPECT_EQ(analyze(Graph(first), decode(1, 1), {}).front().module, "embed_tokens");
}

TEST(Shard, ExpertRanksWithTokensOfTheirOwnServeEachOther) {
  // Attention on every rank with its own batch of 4, experts spread over 3: each expert rank works on what the three
  // batches send to its two experts: as many rows as its own batch sends out.
  const Config third = part(sample(), {.expert = 3}, {.expert = 1});
  for (const OpCost& cost : analyze(Graph(third), decode(4, 8), {})) {
    if (cost.op != "mlp.experts.up_proj") continue;
    EXPECT_DOUBLE_EQ(cost.flops, 2 * 16 * 12 * 4 * 2);
  }
}

TEST(Shard, WhatCannotBeSplitIsRefused) {
  EXPECT_EQ(shard(sample(), {.tensor = 9}, {}).error().message,
            "tensor parallelism of 9 is not possible: this model allows 1 to 8");
  EXPECT_FALSE(shard(sample(), {.pipeline = 5}, {}));
  EXPECT_FALSE(shard(sample(), {.expert = 7}, {}));
  EXPECT_FALSE(shard(sample(), {.tensor = 2}, {.tensor = 2}));
  EXPECT_FALSE(shard(sample(), {.tensor = 4, .expert = 3}, {}));
  EXPECT_FALSE(shard(sample(), {.tensor = 0}, {}));
}

TEST(Shard, CommunicationByHand) {
  // 10 rows of 16 float32: 640 bytes. Two all-reduces in each of 4 layers; a ring of 4 sends 2·3/4 of it.
  EXPECT_DOUBLE_EQ(communication_bytes(sample(), {.tensor = 4}, prefill(1, 10)), 4 * 2 * 640 * 2 * 0.75);
  EXPECT_DOUBLE_EQ(communication_bytes(sample(), {}, prefill(1, 10)), 0);
  EXPECT_DOUBLE_EQ(communication_bytes(sample(), {.pipeline = 2}, prefill(1, 10)), 640);
  // Two of the layers send each row to two experts and back; 2/3 of them are elsewhere.
  EXPECT_DOUBLE_EQ(communication_bytes(sample(), {.expert = 3}, prefill(1, 10)), 2 * 2 * 640 * 2 * (2.0 / 3));
}

}  // namespace
}  // namespace llmprof::model
