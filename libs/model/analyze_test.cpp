#include <gtest/gtest.h>

#include <map>

#include "model/model.h"
#include "model/testing/tiny_gpt2.h"

namespace llmprof::model {
namespace {

// A Llama small enough to count by hand: hidden 8, 4 query heads of 2, 2 kv heads, MLP 12, 10 words, 2 layers.
Config tiny_llama() {
  return {.family = "llama",
          .layers = 2,
          .hidden = 8,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 2,
          .intermediate = 12,
          .vocab = 10,
          .gated_mlp = true};
}

std::map<std::string, OpCost> by_module(const std::vector<OpCost>& costs) {
  std::map<std::string, OpCost> found;
  for (const OpCost& cost : costs) found[cost.module] = cost;
  EXPECT_EQ(found.size(), costs.size()) << "a module path occurs twice";
  return found;
}

OpCost total(const std::vector<OpCost>& costs) {
  OpCost sum;
  for (const OpCost& cost : costs) {
    sum.flops += cost.flops;
    sum.weight_bytes += cost.weight_bytes;
    sum.kv_bytes += cost.kv_bytes;
    sum.activation_bytes += cost.activation_bytes;
  }
  return sum;
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

TEST(Parameters, EqualThePublishedCounts) {
  // Llama 3.2 1B: 128256·2048 + 16·(2·2048² + 2·2048·512 + 3·2048·8192 + 2·2048) + 2048, tied.
  const Config llama_3_2_1b{.family = "llama",
                            .layers = 16,
                            .hidden = 2048,
                            .heads = 32,
                            .kv_heads = 8,
                            .head_dim = 64,
                            .intermediate = 8192,
                            .vocab = 128256,
                            .gated_mlp = true,
                            .tied_embeddings = true};
  EXPECT_EQ(parameters(llama_3_2_1b), 1'235'814'400);
  const Config llama_2_7b{.family = "llama",
                          .layers = 32,
                          .hidden = 4096,
                          .heads = 32,
                          .kv_heads = 32,
                          .head_dim = 128,
                          .intermediate = 11008,
                          .vocab = 32000,
                          .gated_mlp = true};
  EXPECT_EQ(parameters(llama_2_7b), 6'738'415'616);
  const Config gpt2{.family = "gpt2",
                    .layers = 12,
                    .hidden = 768,
                    .heads = 12,
                    .kv_heads = 12,
                    .head_dim = 64,
                    .intermediate = 3072,
                    .vocab = 50257,
                    .positions = 1024,
                    .biases = true,
                    .tied_embeddings = true};
  EXPECT_EQ(parameters(gpt2), 124'439'808);
}

TEST(Analyze, LlamaModulesInExecutionOrder) {
  Config config = tiny_llama();
  config.layers = 1;
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
  const std::vector<OpCost> costs = analyze(config, {}, kUnlimited);
  EXPECT_EQ(modules(costs), expected);
  EXPECT_EQ(costs[2].op, "self_attn.q_proj");
  EXPECT_EQ(costs[13].op, "norm");
}

TEST(Analyze, Gpt2ModulesInExecutionOrder) {
  Config config = tiny_gpt2();
  config.layers = 1;
  const std::vector<std::string> expected{
      "wte",          "h.0.ln_1",    "h.0.attn.c_attn", "h.0.attn.core", "h.0.attn.c_proj", "h.0.ln_2",
      "h.0.mlp.c_fc", "h.0.mlp.act", "h.0.mlp.c_proj",  "ln_f",          "lm_head",         "sampling"};
  EXPECT_EQ(modules(analyze(config, {}, kUnlimited)), expected);
}

TEST(Analyze, LlamaPrefillByHand) {
  // 3 sequences of 5 new tokens, nothing before: 15 rows.
  const std::vector<OpCost> costs =
      analyze(tiny_llama(), {.batch = 3, .tokens = 5, .context = 5, .sampled = 1}, kUnlimited);
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
  EXPECT_EQ(total(costs).flops, 2 * 15840 + 480);
}

TEST(Analyze, LlamaDecodeByHand) {
  // 3 sequences, one new token each, 6 of context: 3 rows, 6 pairs a sequence.
  const std::vector<OpCost> costs =
      analyze(tiny_llama(), {.batch = 3, .tokens = 1, .context = 6, .sampled = 1}, kUnlimited);
  const auto at = by_module(costs);
  EXPECT_EQ(at.at("layers.0.self_attn.core").flops, 2 * 4 * (2 + 2) * 6 * 3);  // 576
  // Rows 3 instead of 15: 384 + 192 + 192 + 384 + 3·576 = 2880 for the weights of a layer.
  EXPECT_EQ(total(costs).flops, 2 * (2880 + 576) + 480);
  // Read 6 and write 1 token for 3 sequences; K and V of 2 heads of 2 values of 4 bytes: 2·2·2·4 = 32 bytes a token.
  EXPECT_EQ(at.at("layers.0.self_attn.core").kv_bytes, (6 + 1) * 3 * 32);
  EXPECT_EQ(at.at("layers.0.mlp.up_proj").kv_bytes, 0);
}

TEST(Analyze, Gpt2ByHand) {
  // 2 sequences of 4 new tokens after 3 cached ones: 8 rows; queries see 4, 5, 6, 7 keys: 22 pairs.
  const std::vector<OpCost> costs =
      analyze(tiny_gpt2(), {.batch = 2, .tokens = 4, .context = 7, .sampled = 4}, kUnlimited);
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
  const auto at =
      by_module(analyze(tiny_llama(), {.batch = 1, .tokens = 100, .context = 100, .sampled = 1}, kUnlimited));
  EXPECT_EQ(at.at("embed_tokens").weight_bytes, 10 * 8 * 4);
}

TEST(Analyze, WeightsAreReadOncePerPass) {
  // Everything but the looked-up rows, however many tokens there are.
  for (const Config& config : {tiny_llama(), tiny_gpt2()}) {
    for (const std::int64_t tokens : {1, 7}) {
      double sum = 0;
      for (const OpCost& cost :
           analyze(config, {.batch = 2, .tokens = tokens, .context = 9, .sampled = 1}, kUnlimited)) {
        sum += cost.op == "embed_tokens" || cost.op == "wte" ? 0 : cost.weight_bytes;
      }
      EXPECT_EQ(sum, weights_read_bytes(config)) << config.family;
    }
  }
  // Llama: 2 layers of 8·8 + 2·8·4 + 8·8 + 3·8·12 + 2·8 = 496, the last norm 8, lm_head 80: 1080 values of 4 bytes.
  EXPECT_EQ(weights_read_bytes(tiny_llama()), 1080 * 4);
}

TEST(Analyze, TiedLogitsReadTheEmbeddingOnceAndOwnNothing) {
  Config tied = tiny_llama();
  tied.tied_embeddings = true;
  EXPECT_EQ(parameters(tiny_llama()) - parameters(tied), 80);
  EXPECT_EQ(weights_read_bytes(tied), weights_read_bytes(tiny_llama()));
}

TEST(Analyze, ActivationsMoveOnlyWhenTheyAreLargerThanTheChip) {
  const Pass pass{.batch = 1, .tokens = 10, .context = 10, .sampled = 1};  // 10 rows of 4-byte values
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
  const Pass pass{.batch = 2, .tokens = 3, .context = 8, .sampled = 1};
  const auto with_layers = [&](std::int64_t layers) {
    Config config = tiny_llama();
    config.layers = layers;
    return total(analyze(config, pass, 0));
  };
  const OpCost none = with_layers(0), one = with_layers(1), five = with_layers(5);
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
      const auto prefill = analyze(config, {.batch = 2, .tokens = length, .context = length, .sampled = 1}, 0);
      double steps = 0, logits = 0;
      for (std::int64_t context = 1; context <= length; ++context) {
        const auto step = analyze(config, {.batch = 2, .tokens = 1, .context = context, .sampled = 1}, 0);
        steps += total(step).flops;
        logits = flops_of_op(step, "lm_head");
      }
      EXPECT_EQ(total(prefill).flops, steps - static_cast<double>(length - 1) * logits)
          << config.family << " " << length;
    }
  }
}

TEST(Analyze, AsManyKvHeadsAsHeadsIsMultiHeadAttention) {
  Config grouped = tiny_llama(), full = tiny_llama();
  full.kv_heads = full.heads;
  const Pass pass{.batch = 1, .tokens = 4, .context = 9, .sampled = 1};
  const auto g = by_module(analyze(grouped, pass, 0)), f = by_module(analyze(full, pass, 0));
  EXPECT_EQ(f.at("layers.0.self_attn.k_proj").flops, f.at("layers.0.self_attn.q_proj").flops);
  EXPECT_EQ(f.at("layers.0.self_attn.core").flops, g.at("layers.0.self_attn.core").flops);  // grouping saves bytes only
  EXPECT_EQ(f.at("layers.0.self_attn.core").kv_bytes, 2 * g.at("layers.0.self_attn.core").kv_bytes);
  EXPECT_EQ(f.at("layers.0.self_attn.k_proj").weight_bytes, 2 * g.at("layers.0.self_attn.k_proj").weight_bytes);
}

TEST(Analyze, NonsenseFromAnnotationsNeverGoesNegative) {
  for (const Pass& pass :
       {Pass{-1, 5, 5, 1}, Pass{1, -5, 5, 1}, Pass{1, 5, -5, 1}, Pass{1, 5, 2, 99}, Pass{0, 0, 0, 0}}) {
    for (const OpCost& cost : analyze(tiny_gpt2(), pass, 0)) {
      EXPECT_GE(cost.flops, 0);
      EXPECT_GE(cost.weight_bytes, 0);
      EXPECT_GE(cost.kv_bytes, 0);
      EXPECT_GE(cost.activation_bytes, 0);
    }
  }
  // A pass of nothing costs nothing.
  EXPECT_EQ(total(analyze(tiny_gpt2(), {0, 0, 0, 0}, 0)).weight_bytes, 0);
}

}  // namespace
}  // namespace llmprof::model
