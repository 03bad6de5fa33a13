#include <gtest/gtest.h>

#include <cmath>

#include <map>

#include "model/model.h"
#include "model/testing/tiny.h"

namespace llmprof::model {
namespace {

std::map<std::string, OpCost> by_module(const std::vector<OpCost>& costs) {
  std::map<std::string, OpCost> found;
  for (const OpCost& cost : costs) found[cost.module] = cost;
  EXPECT_EQ(found.size(), costs.size()) << "a module path occurs twice";
  return found;
}

double flops_of_op(const std::vector<OpCost>& costs, std::string_view op) {
  double sum = 0;
  for (const OpCost& cost : costs) sum += cost.op == op ? cost.flops : 0;
  return sum;
}

std::vector<std::string> modules(const std::vector<OpCost>& costs) {
  std::vector<std::string> paths;
  for (const OpCost& cost : costs) paths.push_back(cost.module);
  return paths;
}

TEST(Analyze, LlamaModulesInExecutionOrder) {
  const Config config = tiny_llama(1);
  const std::vector<std::string> expected{"embed_tokens",
                                          "layers.0.input_layernorm",
                                          "layers.0.self_attn.q_proj",
                                          "layers.0.self_attn.k_proj",
                                          "layers.0.self_attn.v_proj",
                                          "layers.0.self_attn.rope",
                                          "layers.0.self_attn.core",
                                          "layers.0.self_attn.o_proj",
                                          "layers.0.post_attention_layernorm",
                                          "layers.0.mlp.gate_proj",
                                          "layers.0.mlp.up_proj",
                                          "layers.0.mlp.act",
                                          "layers.0.mlp.down_proj",
                                          "norm",
                                          "lm_head",
                                          "sampling"};
  const std::vector<OpCost> costs = analyze(config, decode(1, 1), kUnlimited);
  EXPECT_EQ(modules(costs), expected);
  EXPECT_EQ(costs[2].op, "self_attn.q_proj");
  EXPECT_EQ(costs[13].op, "norm");
}

TEST(Analyze, Gpt2ModulesInExecutionOrder) {
  const Config config = tiny_gpt2(1);
  const std::vector<std::string> expected{
      "wte",          "h.0.ln_1",    "h.0.attn.c_attn", "h.0.attn.core", "h.0.attn.c_proj", "h.0.ln_2",
      "h.0.mlp.c_fc", "h.0.mlp.act", "h.0.mlp.c_proj",  "ln_f",          "lm_head",         "sampling"};
  EXPECT_EQ(modules(analyze(config, decode(1, 1), kUnlimited)), expected);
}

TEST(Analyze, LlamaPrefillByHand) {
  // 3 sequences of 5 new tokens, nothing before: 15 rows.
  const std::vector<OpCost> costs = analyze(tiny_llama(), one(3, 5, 5), kUnlimited);
  const auto at = by_module(costs);
  EXPECT_EQ(at.at("layers.1.self_attn.q_proj").flops, 2 * 15 * 8 * 8);  // 1920
  EXPECT_EQ(at.at("layers.1.self_attn.k_proj").flops, 2 * 15 * 8 * 4);  // 960: 2 kv heads of 2
  EXPECT_EQ(at.at("layers.1.self_attn.o_proj").flops, 2 * 15 * 8 * 8);  // 1920
  EXPECT_EQ(at.at("layers.1.mlp.gate_proj").flops, 2 * 15 * 8 * 12);    // 2880
  EXPECT_EQ(at.at("layers.1.mlp.down_proj").flops, 2 * 15 * 12 * 8);    // 2880
  // 1 + 2 + 3 + 4 + 5 = 15 pairs, 4 heads, scores and values 2·2 each: 2·4·(2 + 2)·15·3 sequences.
  EXPECT_EQ(at.at("layers.1.self_attn.core").flops, 1440);
  EXPECT_EQ(at.at("lm_head").flops, 2 * 3 * 8 * 10);  // 480: one position of each sequence
  for (const char* path : {"embed_tokens", "layers.0.input_layernorm", "layers.0.self_attn.rope", "layers.0.mlp.act",
                           "norm", "sampling"}) {
    EXPECT_EQ(at.at(path).flops, 0) << path;
  }
  // Two layers of 1920 + 960 + 960 + 1920 + 3·2880 + 1440 = 15840, and the logits.
  EXPECT_EQ(sum_of(costs).flops, 2 * 15840 + 480);
}

TEST(Analyze, LlamaDecodeByHand) {
  // 3 sequences, one new token each, 6 of context: 3 rows, 6 pairs a sequence.
  const std::vector<OpCost> costs = analyze(tiny_llama(), one(3, 1, 6), kUnlimited);
  const auto at = by_module(costs);
  EXPECT_EQ(at.at("layers.0.self_attn.core").flops, 2 * 4 * (2 + 2) * 6 * 3);  // 576
  // Rows 3 instead of 15: 384 + 192 + 192 + 384 + 3·576 = 2880 for the weights of a layer.
  EXPECT_EQ(sum_of(costs).flops, 2 * (2880 + 576) + 480);
  // Read 6 and write 1 token for 3 sequences; K and V of 2 heads of 2 values of 4 bytes: 2·2·2·4 = 32 bytes a token.
  EXPECT_EQ(at.at("layers.0.self_attn.core").kv_bytes, (6 + 1) * 3 * 32);
  EXPECT_EQ(at.at("layers.0.mlp.up_proj").kv_bytes, 0);
}

TEST(Analyze, Gpt2ByHand) {
  // 2 sequences of 4 new tokens after 3 cached ones: 8 rows; queries see 4, 5, 6, 7 keys: 22 pairs.
  const std::vector<OpCost> costs = analyze(tiny_gpt2(), one(2, 4, 7, 4), kUnlimited);
  const auto at = by_module(costs);
  EXPECT_EQ(at.at("h.2.attn.c_attn").flops, 2 * 8 * 8 * 24);
  EXPECT_EQ(at.at("h.2.attn.core").flops, 2 * 2 * (4 + 4) * 22 * 2);
  EXPECT_EQ(at.at("h.2.mlp.c_fc").flops, 2 * 8 * 8 * 32);
  EXPECT_EQ(at.at("lm_head").flops, 2 * 8 * 8 * 10);  // all four positions of both sequences
  // (8·24 + 24 biases)·4 bytes; the norm has weight and bias.
  EXPECT_EQ(at.at("h.0.attn.c_attn").weight_bytes, (8 * 24 + 24) * 4);
  EXPECT_EQ(at.at("h.0.ln_1").weight_bytes, 2 * 8 * 4);
  // 8 token rows and 4 position rows (both sequences stand at the same positions) of 8 values.
  EXPECT_EQ(at.at("wte").weight_bytes, (8 + 4) * 8 * 4);
  EXPECT_EQ(at.at("lm_head").weight_bytes, 8 * 10 * 4);
}

TEST(Analyze, ALookupNeverReadsMoreThanItsTable) {
  // 100 tokens, 10 words: the whole table, once.
  const auto at = by_module(analyze(tiny_llama(), one(1, 100, 100), kUnlimited));
  EXPECT_EQ(at.at("embed_tokens").weight_bytes, 10 * 8 * 4);
}

TEST(Analyze, WeightsAreReadOncePerPass) {
  // Everything but the looked-up rows, however many tokens there are.
  for (const Config& config : {tiny_llama(), tiny_gpt2()}) {
    for (const std::int64_t tokens : {1, 7}) {
      double sum = 0;
      for (const OpCost& cost : analyze(config, one(2, tokens, 9), kUnlimited)) {
        sum += cost.op == "embed_tokens" || cost.op == "wte" ? 0 : cost.weight_bytes;
      }
      EXPECT_EQ(sum, weights_read_bytes(Graph(config))) << config.family;
    }
  }
  // Llama: 2 layers of 8·8 + 2·8·4 + 8·8 + 3·8·12 + 2·8 = 496, the last norm 8, lm_head 80: 1080 values of 4 bytes.
  EXPECT_EQ(weights_read_bytes(Graph(tiny_llama())), 1080 * 4);
}

TEST(Analyze, TiedLogitsReadTheEmbeddingOnceAndOwnNothing) {
  Config tied = tiny_llama();
  tied.tied_embeddings = true;
  EXPECT_EQ(parameters(Graph(tiny_llama())) - parameters(Graph(tied)), 80);
  EXPECT_EQ(weights_read_bytes(Graph(tied)), weights_read_bytes(Graph(tiny_llama())));
}

TEST(Analyze, ActivationsMoveOnlyWhenTheyAreLargerThanTheChip) {
  const Pass pass = one(1, 10, 10);  // 10 rows of 4-byte values
  // gate_proj: in 10·8·4 = 320, out 10·12·4 = 480 bytes.
  EXPECT_EQ(by_module(analyze(tiny_llama(), pass, 480)).at("layers.0.mlp.gate_proj").activation_bytes, 0);
  EXPECT_EQ(by_module(analyze(tiny_llama(), pass, 479)).at("layers.0.mlp.gate_proj").activation_bytes, 480);
  EXPECT_EQ(by_module(analyze(tiny_llama(), pass, 0)).at("layers.0.mlp.gate_proj").activation_bytes, 800);
  const auto at = by_module(analyze(tiny_llama(), pass, 0));
  EXPECT_EQ(at.at("layers.0.mlp.down_proj").activation_bytes, 480 + 320 + 320);   // with the residual it is added to
  EXPECT_EQ(at.at("layers.0.self_attn.rope").activation_bytes, 2 * (320 + 160));  // q and k, in and out
  EXPECT_EQ(at.at("layers.0.mlp.act").activation_bytes, 3 * 480);
  EXPECT_EQ(at.at("sampling").activation_bytes, 10 * 4);  // the logits of one position
}

TEST(Analyze, AddsUpOverLayers) {
  const Pass pass = one(2, 3, 8);
  const auto with_layers = [&](std::int64_t layers) { return sum_of(analyze(tiny_llama(layers), pass, 0)); };
  const Costs none = with_layers(0), one = with_layers(1), five = with_layers(5);
  EXPECT_GT(one.flops, none.flops);
  EXPECT_EQ(five.flops, none.flops + 5 * (one.flops - none.flops));
  EXPECT_EQ(five.weight_bytes, none.weight_bytes + 5 * (one.weight_bytes - none.weight_bytes));
  EXPECT_EQ(five.kv_bytes, 5 * one.kv_bytes);
  EXPECT_EQ(five.activation_bytes, none.activation_bytes + 5 * (one.activation_bytes - none.activation_bytes));
}

TEST(Analyze, PrefillEqualsTheSumOfItsTokens) {
  // A prefill of T tokens multiplies what T decode steps of context 1…T multiply; only the logits differ (1, not T).
  for (const Config& config : {tiny_llama(), tiny_gpt2()}) {
    for (const std::int64_t length : {1, 2, 13}) {
      const auto prefill = analyze(config, one(2, length, length), 0);
      double steps = 0, logits = 0;
      for (std::int64_t context = 1; context <= length; ++context) {
        const auto step = analyze(config, one(2, 1, context), 0);
        steps += sum_of(step).flops;
        logits = flops_of_op(step, "lm_head");
      }
      EXPECT_EQ(sum_of(prefill).flops, steps - static_cast<double>(length - 1) * logits)
          << config.family << " " << length;
    }
  }
}

TEST(Analyze, AsManyKvHeadsAsHeadsIsMultiHeadAttention) {
  Config grouped = tiny_llama(), full = tiny_llama();
  full.kinds[0].attention.kv_heads = full.kinds[0].attention.heads;
  const Pass pass = one(1, 4, 9);
  const auto g = by_module(analyze(grouped, pass, 0)), f = by_module(analyze(full, pass, 0));
  EXPECT_EQ(f.at("layers.0.self_attn.k_proj").flops, f.at("layers.0.self_attn.q_proj").flops);
  EXPECT_EQ(f.at("layers.0.self_attn.core").flops, g.at("layers.0.self_attn.core").flops);  // grouping saves bytes only
  EXPECT_EQ(f.at("layers.0.self_attn.core").kv_bytes, 2 * g.at("layers.0.self_attn.core").kv_bytes);
  EXPECT_EQ(f.at("layers.0.self_attn.k_proj").weight_bytes, 2 * g.at("layers.0.self_attn.k_proj").weight_bytes);
}

TEST(Analyze, NonsenseFromAnnotationsNeverGoesNegative) {
  for (const Pass& pass : {one(-1, 5, 5, 1), one(1, -5, 5, 1), one(1, 5, -5, 1), one(1, 5, 2, 99), one(0, 0, 0, 0)}) {
    for (const OpCost& cost : analyze(tiny_gpt2(), pass, 0)) {
      EXPECT_GE(cost.flops, 0);
      EXPECT_GE(cost.weight_bytes, 0);
      EXPECT_GE(cost.kv_bytes, 0);
      EXPECT_GE(cost.activation_bytes, 0);
    }
  }
  // A pass of nothing costs nothing.
  EXPECT_EQ(sum_of(analyze(tiny_gpt2(), one(0, 0, 0, 0), 0)).weight_bytes, 0);
}

TEST(Gemm, FlopsAndBytes) {
  EXPECT_EQ(gemm_flops(3, 4, 5, 2), 2 * 3 * 4 * 5 * 2);
  EXPECT_EQ(gemm_bytes(3, 4, 5, 2, 4), (3 * 5 + 5 * 4 + 3 * 4) * 2 * 4);
  EXPECT_EQ(gemm_flops(1 << 30, 1 << 30, 1 << 30, 1), 2 * std::ldexp(1.0, 90));  // no overflow
}

}  // namespace
}  // namespace llmprof::model
