// What must hold for every model, whatever its sizes.

#include <gtest/gtest.h>

#include <random>

#include "model/memory.h"
#include "model/testing/tiny.h"

namespace llmprof::model {
namespace {

// Hidden 16; layers 0, 1 dense with a window, 2, 3 of 6 experts (2 chosen, one shared), 4 latent.
Config patchwork() {
  Config config;
  config.family = "llama";
  config.hidden = 16;
  config.vocab = 50;
  const Attention grouped{.heads = 4, .kv_heads = 2, .qk_dim = 6, .v_dim = 6, .q_norm = 6, .k_norm = 6};
  Attention windowed = grouped,
            latent{.heads = 4, .kv_heads = 4, .qk_dim = 6, .v_dim = 5, .q_rank = 7, .kv_rank = 3, .rope_dim = 2};
  windowed.window = 5;
  windowed.qkv_bias = true;
  const Mlp experts{.width = 9, .experts = 6, .experts_per_token = 2, .shared_width = 11, .shared_gate = true};
  for (const LayerKind& kind :
       {LayerKind{windowed, {.width = 24}}, LayerKind{windowed, {.width = 24}}, LayerKind{grouped, experts},
        LayerKind{grouped, experts}, LayerKind{latent, {.width = 24}}}) {
    add_layer(config, kind);
  }
  return config;
}

void expect_equal(const Costs& a, const Costs& b, const std::string& what) {
  EXPECT_DOUBLE_EQ(a.flops, b.flops) << what;
  EXPECT_DOUBLE_EQ(a.weight_bytes, b.weight_bytes) << what;
  EXPECT_DOUBLE_EQ(a.kv_bytes, b.kv_bytes) << what;
  EXPECT_DOUBLE_EQ(a.activation_bytes, b.activation_bytes) << what;
}

std::vector<Pass> some_passes() {
  return {prefill(1, 12),
          prefill(3, 4, 9),
          decode(2, 17),
          mixed({{.count = 3, .tokens = 1, .context = 8}, {.count = 1, .tokens = 6, .context = 6}}),
          train(PassKind::kForward, 2, 9),
          train(PassKind::kBackward, 2, 9),
          train(PassKind::kOptimizer, 1, 1)};
}

TEST(Properties, TheThreeWaysToSumAgree) {
  for (const Config& config : {patchwork(), tiny_llama(), tiny_gpt2()}) {
    const Graph graph(config);
    for (const Pass& pass : some_passes()) {
      const Conditions conditions{.on_chip_bytes = 100};
      const PassCosts sum = total(graph, pass, conditions);
      expect_equal(sum_of(analyze(graph, pass, conditions)), sum, "per layer");
      expect_equal(sum_of(analyze_by_op(graph, pass, conditions)), sum, "per operator");
      double by_type = 0;
      for (const auto& [type, flops] : sum.flops_by_type) by_type += flops;
      EXPECT_DOUBLE_EQ(by_type, sum.flops);
    }
  }
}

TEST(Properties, LayersAddUp) {
  const Pass pass = prefill(2, 7);
  const auto cost = [&](const Config& config) { return total(Graph(config), pass, {}); };
  Config none = patchwork();
  none.kind_of_layer.clear();
  PassCosts sum = cost(none);
  for (const std::uint32_t kind : patchwork().kind_of_layer) {
    Config one_layer = none;
    one_layer.kind_of_layer = {kind};
    sum += cost(one_layer);
    sum += cost(none) * -1;
  }
  expect_equal(sum, cost(patchwork()), "sum over layers");
}

TEST(Properties, DecodingAfterPrefillCostsTheFlopsOfPrefillingAll) {
  // Prefill of p, then one token at a time up to t: the products of a prefill of t, but for logits at every step, and
  // for latent attention, which decodes in another way than it prefills.
  Config config = patchwork();
  config.kind_of_layer.pop_back();
  const Graph graph(config);
  const double logits = 2 * 16 * 50;
  for (const std::int64_t prompt : {1, 4, 11}) {
    double flops = total(graph, prefill(1, prompt), {}).flops;
    for (std::int64_t context = prompt + 1; context <= 20; ++context)
      flops += total(graph, decode(1, context), {}).flops;
    EXPECT_DOUBLE_EQ(flops, total(graph, prefill(1, 20), {}).flops + static_cast<double>(20 - prompt) * logits);
    // In two pieces, as chunked prefill does.
    const double pieces =
        total(graph, prefill(1, prompt), {}).flops + total(graph, prefill(1, 20 - prompt, 20), {}).flops;
    EXPECT_DOUBLE_EQ(pieces, total(graph, prefill(1, 20), {}).flops + logits);
  }
}

TEST(Properties, AMixedPassHasTheFlopsAndCacheTrafficOfItsPartsAndReadsWeightsOnce) {
  const Graph graph(patchwork());
  const PassCosts together =
      total(graph, mixed({{.count = 2, .tokens = 1, .context = 9}, {.count = 1, .tokens = 5, .context = 5}}), {});
  const PassCosts decoding = total(graph, decode(2, 9), {}), prefilling = total(graph, prefill(1, 5), {});
  EXPECT_DOUBLE_EQ(together.flops, decoding.flops + prefilling.flops);
  EXPECT_DOUBLE_EQ(together.kv_bytes, decoding.kv_bytes + prefilling.kv_bytes);
  EXPECT_LT(together.weight_bytes, decoding.weight_bytes + prefilling.weight_bytes);
  EXPECT_GT(together.weight_bytes, std::max(decoding.weight_bytes, prefilling.weight_bytes));
}

TEST(Properties, TwiceTheBatchTwiceTheFlopsAndCache) {
  const Graph graph(patchwork());
  const PassCosts one_batch = total(graph, decode(3, 30), {}), two = total(graph, decode(6, 30), {});
  EXPECT_DOUBLE_EQ(two.flops, 2 * one_batch.flops);
  EXPECT_DOUBLE_EQ(two.kv_bytes, 2 * one_batch.kv_bytes);
  EXPECT_GE(two.weight_bytes, one_batch.weight_bytes);  // more experts are touched
  EXPECT_DOUBLE_EQ(kv_cache_bytes(graph, 6, 30), 2 * kv_cache_bytes(graph, 3, 30));
}

TEST(Properties, MoreExpertsThanTokensNeverReadMoreThanAllOfThem) {
  const Graph graph(patchwork());
  for (std::int64_t batch = 1; batch <= 4096; batch *= 4) {
    const double read = total(graph, decode(batch, 10), {}).weight_bytes;
    EXPECT_LE(read, weights_read_bytes(graph) + 50 * 16 * 4 + 1e-6);  // and at most the embedding table
  }
}

TEST(Properties, RandomModelsHaveFiniteCostsThatGrowWithContext) {
  std::mt19937 random(7);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<std::int64_t>(low, high)(random); };
  for (int round = 0; round < 200; ++round) {
    Config config = tiny_llama(pick(1, 5));
    config.hidden = pick(1, 300);
    config.vocab = pick(1, 1000);
    Attention& attention = config.kinds[0].attention;
    attention.kv_heads = pick(1, 4);
    attention.heads = attention.kv_heads * pick(1, 4);
    attention.qk_dim = pick(1, 64);
    attention.v_dim = pick(1, 64);
    attention.window = pick(0, 1) * pick(1, 50);
    Mlp& mlp = config.kinds[0].mlp;
    mlp.experts = pick(0, 1) * pick(1, 64);
    mlp.experts_per_token = mlp.experts > 0 ? pick(1, static_cast<int>(mlp.experts)) : 0;
    const Graph graph(config);
    double before = 0;
    for (std::int64_t context = 1; context < 300; context += 13) {
      const PassCosts costs = total(graph, decode(2, context), {});
      EXPECT_GE(costs.flops, before);
      before = costs.flops;
      EXPECT_TRUE(std::isfinite(costs.bytes()));
    }
    EXPECT_LE(active_parameters(graph), parameters(graph));
    std::int64_t by_part = 0;
    for (const PartParameters& part : parameters_by_part(graph)) by_part += part.parameters;
    EXPECT_EQ(by_part, parameters(graph));
  }
}

}  // namespace
}  // namespace llmprof::model
