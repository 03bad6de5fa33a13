#include "model/memory.h"

#include <gtest/gtest.h>

#include "model/testing/tiny.h"

namespace llmprof::model {
namespace {

Quantization quantised(const Number& weight, const std::string& arithmetic, const std::string& ignored) {
  Quantization quantization;
  quantization.method = "x";
  quantization.weight = weight;
  quantization.arithmetic = arithmetic;
  quantization.ignore = {ignored};
  return quantization;
}

TEST(Memory, WeightsAtTheTypeTheyAreStoredIn) {
  Config config = tiny_llama();
  EXPECT_EQ(weights_bytes(Graph(config)), static_cast<double>(parameters(Graph(config))) * 4);
  config.set_type({"bfloat16", 2});
  EXPECT_EQ(weights_bytes(Graph(config)), static_cast<double>(parameters(Graph(config))) * 2);
}

TEST(Memory, QuantisedLayersAndWhatIsLeftAlone) {
  Config config = tiny_llama(1);
  config.set_type({"bfloat16", 2});
  config.quantization = quantised({"int4", 0.5}, "", "down_proj");
  // Embedding and lm_head 2·80, norms 3·8 and down_proj 96 at 2 bytes; q 64, k 32, v 32, o 64, gate 96, up 96 at 0.5.
  EXPECT_EQ(weights_bytes(Graph(config)), (160 + 24 + 96) * 2 + (64 + 32 + 32 + 64 + 96 + 96) * 0.5);
}

TEST(Memory, LayersThatAreQuantisedDifferentlyAreTakenApart) {
  Config config = tiny_llama(4);
  config.quantization = quantised({"int8", 1}, "int8", "layers.2.mlp.up_proj");
  const Graph graph(config);
  ASSERT_EQ(graph.groups().size(), 2U);
  EXPECT_EQ(graph.groups()[0].layers, (std::vector<std::int64_t>{0, 1, 3}));
  EXPECT_EQ(graph.groups()[1].layers, (std::vector<std::int64_t>{2}));
  // FLOPs of up_proj: three layers in int8, one in float32; 2·8·12 each for one token.
  for (const OpCost& cost : analyze_by_op(graph, decode(1, 1), {})) {
    if (cost.op != "mlp.up_proj") continue;
    EXPECT_EQ(cost.flops, cost.arithmetic == "int8" ? 3 * 192 : 192);
  }
}

TEST(Memory, WhatTheCheckpointStoresGoesFirst) {
  Config config = tiny_llama(2);
  config.stored["layers.1.mlp.up_proj"] = {"q6_k", 0.8203125};
  const Graph graph(config);
  EXPECT_EQ(graph.groups().size(), 2U);
  EXPECT_DOUBLE_EQ(weights_bytes(graph), static_cast<double>(parameters(graph)) * 4 - 96 * (4 - 0.8203125));
}

TEST(Memory, KvCacheByHand) {
  // K and V of 2 heads of 2 values of 4 bytes in 2 layers: 64 bytes a token.
  const Graph graph(tiny_llama());
  EXPECT_EQ(kv_bytes_per_token(graph), 64);
  EXPECT_EQ(kv_cache_bytes(graph, 3, 10), 3 * 10 * 64);
  Config windowed = tiny_llama();
  LayerKind kind = windowed.kinds[0];
  kind.attention.window = 4;
  windowed.kind_of_layer.pop_back();
  add_layer(windowed, kind);
  EXPECT_EQ(kv_cache_bytes(Graph(windowed), 3, 10), 3 * (10 + 4) * 32);  // the second layer keeps four tokens
  EXPECT_EQ(kv_cache_bytes(Graph(windowed), 3, 3), 3 * 3 * 64);
}

TEST(Memory, ActivationsAreTheLargestOperatorAndTheResidualStream) {
  // 10 tokens: mlp.act reads gate and up and writes the product, 3·12 values a row; the stream has 8.
  EXPECT_EQ(activation_bytes(Graph(tiny_llama()), prefill(1, 10)), (36 + 8) * 10 * 4);
}

TEST(TrainingMemory, ByHand) {
  // GPT-2, a row of a layer: ln_1 8, qkv 24, core 8, c_proj 8, ln_2 8, c_fc 32, act 32, c_proj 8 = 128 = 16·hidden:
  // in two bytes 32·s·b·h, which is what Korthikanti et al. (2022) count (34) less their two dropout masks.
  const Graph graph(tiny_gpt2());
  const double rows = 2 * 4;
  const TrainingMemory none = training_memory(graph, 2, 4, Recompute::kNone);
  // And once: the embedding's 8, the last norm's 8, the logits' 10.
  EXPECT_EQ(none.activations, rows * 4 * (3 * 128 + 8 + 8 + 10));
  EXPECT_EQ(none.weights, 2840 * 4);
  EXPECT_EQ(none.gradients, 2840 * 4);
  EXPECT_EQ(none.moments, 2840 * 8);
  EXPECT_EQ(none.recomputed_flops, 0);
  // Without norms and the activation: 128 - 8 - 8 - 32; of the rest embedding and logits.
  EXPECT_EQ(training_memory(graph, 2, 4, Recompute::kCheap).activations, rows * 4 * (3 * 80 + 8 + 10));
  // The input of each of three layers, and one layer in full.
  const TrainingMemory layers = training_memory(graph, 2, 4, Recompute::kLayers);
  EXPECT_EQ(layers.activations, rows * 4 * (3 * 8 + 128 + 8 + 8 + 10));
  EXPECT_EQ(layers.recomputed_flops, 3 * 12928);  // training_test.cpp: a layer's way forward
  EXPECT_EQ(layers.total(), 2840 * 16 + layers.activations);
}

}  // namespace
}  // namespace llmprof::model
