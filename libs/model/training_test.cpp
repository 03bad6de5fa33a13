// The passes of training, counted by hand.

#include <gtest/gtest.h>

#include <map>

#include "model/model.h"
#include "model/testing/tiny.h"

namespace llmprof::model {
namespace {

// 2 sequences of 4 tokens: 8 rows, 1 + 2 + 3 + 4 = 10 pairs of query and key in each sequence.
std::map<std::string, OpCost> costs(PassKind kind, std::int64_t on_chip_bytes = kUnlimited,
                                    const Config& config = tiny_gpt2()) {
  std::map<std::string, OpCost> found;
  for (const OpCost& cost : analyze(config, train(kind, 2, 4), on_chip_bytes)) {
    found[cost.module] = cost;
  }
  return found;
}

double total(const std::map<std::string, OpCost>& all, double OpCost::*field) {
  double sum = 0;
  for (const auto& [module, cost] : all) sum += cost.*field;
  return sum;
}

// Low-rank adapters beside frozen weights: gradients of inputs pass through every product, those of weights are made
// for the adapters only, and so is the update.
TEST(Training, OnlyAdaptersOfFrozenWeightsAreTrained) {
  const std::string keys = R"({"model_type": "inferred", "num_hidden_layers": 2, "hidden_size": 8, "vocab_size": 50,
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 2, "intermediate_size": 16)";
  const auto read = [](const std::string& text) { return Graph(parse_config(text, "config.json").value()); };
  const Graph plain = read(keys + "}"),
              adapted = read(keys + R"(, "frozen": true, "adapters": {"self_attn.q_proj": 3}})");
  const std::int64_t rank = 3, added = 2 * (8 * rank + rank * 8);
  EXPECT_EQ(parameters(adapted), parameters(plain) + added);
  const Pass forward = train(PassKind::kForward, 2, 4), back = train(PassKind::kBackward, 2, 4);
  const double all = total(plain, forward, {}).flops, more = 2.0 * 8 * static_cast<double>(added);
  const double pairs =
      2 * 2 * (4 * 5 / 2) * 2.0 * 8 * 2;  // layers, sequences, pairs of a query and a key; score, value
  EXPECT_EQ(total(adapted, forward, {}).flops, all + more);
  EXPECT_EQ(total(adapted, back, {}).flops, all - pairs + 2 * pairs + 2 * more);
  EXPECT_EQ(total(adapted, {.kind = PassKind::kOptimizer, .sequences = {{}}}, {}).weight_bytes,
            static_cast<double>(added) * (3 * 4 + 4 * 4));
}

TEST(Training, ForwardByHand) {
  const auto at = costs(PassKind::kForward);
  EXPECT_EQ(at.at("h.1.attn.c_attn").flops, 2 * 8 * 8 * 24);
  EXPECT_EQ(at.at("h.1.attn.c_proj").flops, 2 * 8 * 8 * 8);
  EXPECT_EQ(at.at("h.1.mlp.c_fc").flops, 2 * 8 * 8 * 32);
  EXPECT_EQ(at.at("h.1.mlp.c_proj").flops, 2 * 8 * 32 * 8);
  EXPECT_EQ(at.at("h.1.attn.core").flops, 2 * 2 * (4 + 4) * 10 * 2);  // 640
  EXPECT_EQ(at.at("lm_head").flops, 2 * 8 * 8 * 10);                  // every position has a target
  // Layer 3072 + 1024 + 4096 + 4096 + 640 = 12928; three of them and 1280 for the logits.
  EXPECT_EQ(total(at, &OpCost::flops), 3 * 12928 + 1280);
  EXPECT_EQ(total(at, &OpCost::kv_bytes), 0);  // nothing is cached
  EXPECT_EQ(at.at("h.0.mlp.c_fc").weight_bytes, (8 * 32 + 32) * 4);
  EXPECT_TRUE(at.contains("loss"));
  EXPECT_FALSE(at.contains("sampling"));
}

TEST(Training, ForwardEqualsAPrefillWithLogitsEverywhereButForTheCache) {
  const auto forward = costs(PassKind::kForward);
  for (const OpCost& cost : analyze(tiny_gpt2(), one(2, 4, 4, 4), kUnlimited)) {
    if (cost.module == "sampling") continue;
    EXPECT_EQ(forward.at(cost.module).flops, cost.flops) << cost.module;
    EXPECT_EQ(forward.at(cost.module).weight_bytes, cost.weight_bytes) << cost.module;
  }
}

TEST(Training, BackwardByHand) {
  const auto at = costs(PassKind::kBackward), forward = costs(PassKind::kForward);
  // dx = dy·W and dW = dyᵀ·x: two products of the forward one's size. Attention: dV, dP, dQ, dK against QKᵀ and PV.
  for (const auto& [module, cost] : at) EXPECT_EQ(cost.flops, 2 * forward.at(module).flops) << module;
  EXPECT_EQ(at.at("h.2.mlp.c_fc").flops, 2 * (2 * 8 * 8 * 32));
  EXPECT_EQ(at.at("h.2.attn.core").flops, 4 * (2 * 2 * 4 * 10 * 2));
  EXPECT_EQ(at.at("lm_head").flops, 2 * 1280);
  EXPECT_EQ(at.at("wte").flops, 0);  // token ids have no gradient
  EXPECT_EQ(total(at, &OpCost::flops), 2 * (3 * 12928 + 1280));
  // The matrix is read for dx; its gradient and the bias's are written.
  EXPECT_EQ(at.at("h.0.mlp.c_fc").weight_bytes, (8 * 32 + 8 * 32 + 32) * 4);
  EXPECT_EQ(at.at("h.0.ln_1").weight_bytes, (8 + 2 * 8) * 4);  // weight read; gradients of weight and bias written
  EXPECT_EQ(at.at("lm_head").weight_bytes, (80 + 80) * 4);     // the table read, its gradient written
  // 8 rows of the table's gradient are read and written, 4 rows of the positions' are written.
  EXPECT_EQ(at.at("wte").weight_bytes, (2 * 8 + 4) * 8 * 4);
  EXPECT_EQ(at.at("loss").weight_bytes, 0);
  EXPECT_EQ(total(at, &OpCost::kv_bytes), 0);
}

TEST(Training, AnUntiedTableIsWrittenOnly) {
  Config untied = tiny_gpt2();
  untied.tied_embeddings = false;
  EXPECT_EQ(costs(PassKind::kBackward, kUnlimited, untied).at("wte").weight_bytes, (8 + 4) * 8 * 4);
}

TEST(Training, OptimizerByHand) {
  const auto at = costs(PassKind::kOptimizer);
  EXPECT_EQ(total(at, &OpCost::flops), 0);  // no matrix products
  EXPECT_EQ(total(at, &OpCost::activation_bytes), 0);
  // float32: 4 values read (parameter, gradient, two moments), 3 written: 28 bytes for each parameter.
  EXPECT_EQ(at.at("h.0.attn.c_attn").weight_bytes, (8 * 24 + 24) * 28);
  EXPECT_EQ(at.at("h.0.ln_2").weight_bytes, 16 * 28);
  EXPECT_EQ(at.at("wte").weight_bytes, (10 + 16) * 8 * 28);  // the whole tables, whatever was looked up
  EXPECT_EQ(at.at("lm_head").weight_bytes, 0);               // tied: it owns nothing
  EXPECT_EQ(at.at("h.0.mlp.act").weight_bytes, 0);
  EXPECT_EQ(total(at, &OpCost::weight_bytes), static_cast<double>(parameters(Graph(tiny_gpt2()))) * 28);
}

TEST(Training, StateIsParametersGradientsAndMoments) {
  EXPECT_EQ(training_state_bytes(Graph(tiny_gpt2())), 2840 * 16);  // 26·8 in tables, 3·872 in layers, 16 in ln_f
}

TEST(Training, HalfPrecisionParametersKeepFloat32Moments) {
  Config half = tiny_gpt2();
  half.weight = {"bfloat16", 2};
  // Parameter and gradient read, parameter written: 3·2; moments read and written: 4·4.
  EXPECT_EQ(costs(PassKind::kOptimizer, kUnlimited, half).at("h.0.ln_1").weight_bytes, 16 * (6 + 16));
}

TEST(Training, TensorsThatLeaveTheChip) {
  // 8 rows of 4-byte values: 32 bytes for each value of a row.
  const auto forward = costs(PassKind::kForward, 0), back = costs(PassKind::kBackward, 0);
  EXPECT_EQ(forward.at("h.0.attn.core").activation_bytes, 4 * 8 * 32);     // q, k, v in, result out
  EXPECT_EQ(forward.at("loss").activation_bytes, 10 * 32);                 // logits read
  EXPECT_EQ(back.at("h.0.attn.core").activation_bytes, 7 * 8 * 32);        // q, k, v, dout in; dq, dk, dv out
  EXPECT_EQ(back.at("h.0.mlp.c_fc").activation_bytes, (8 + 32 + 8) * 32);  // x and dy in, dx out
  EXPECT_EQ(back.at("h.0.mlp.c_proj").activation_bytes, (32 + 8 + 32) * 32);
  EXPECT_EQ(back.at("h.0.mlp.act").activation_bytes, 3 * 32 * 32);
  EXPECT_EQ(back.at("h.0.ln_1").activation_bytes, 4 * 8 * 32);  // with the stream's gradient it is added to
  EXPECT_EQ(back.at("ln_f").activation_bytes, 3 * 8 * 32);      // here the stream's gradient begins
  EXPECT_EQ(back.at("lm_head").activation_bytes, (8 + 10 + 8) * 32);
  EXPECT_EQ(back.at("loss").activation_bytes, 2 * 10 * 32);
  EXPECT_EQ(back.at("wte").activation_bytes, 8 * 32);
  // The largest tensor has 32·32 = 1024 bytes: with 1024 on chip nothing moves.
  EXPECT_EQ(total(costs(PassKind::kForward, 1024), &OpCost::activation_bytes), 0);
  EXPECT_EQ(total(costs(PassKind::kBackward, 1024), &OpCost::activation_bytes), 0);
}

TEST(Training, AStepOfGpt2IsSixTimesItsMatricesAndTokens) {
  // GPT-2 small, 4 sequences of 64 tokens: 256 rows. Matrices 12·12·768² + 50257·768 = 123,532,032 multiply-adds a row.
  Config gpt2 = tiny_gpt2();
  gpt2.hidden = 768;
  gpt2.vocab = 50257;
  gpt2.positions = 1024;
  LayerKind layer = gpt2.kinds[0];
  layer.attention.heads = layer.attention.kv_heads = 12;
  layer.attention.qk_dim = layer.attention.v_dim = 64;
  layer.mlp.width = 3072;
  set_layers(gpt2, 12, layer);
  const double attention = 12.0 * 4 * 768 * (64 * 65 / 2) * 4;  // 12 layers, 2080 pairs, 4 sequences
  double sum = 0;
  for (const PassKind kind : {PassKind::kForward, PassKind::kBackward, PassKind::kOptimizer}) {
    for (const OpCost& cost : analyze(gpt2, train(kind, 4, 64), kUnlimited)) sum += cost.flops;
  }
  EXPECT_EQ(sum, 3 * (2 * 256 * 123'532'032.0 + attention));
}

TEST(Training, LlamaToo) {
  const Config llama = tiny_llama();
  const auto forward = costs(PassKind::kForward, 0, llama), back = costs(PassKind::kBackward, 0, llama);
  EXPECT_EQ(total(back, &OpCost::flops), 2 * total(forward, &OpCost::flops));
  EXPECT_EQ(forward.at("layers.0.self_attn.core").activation_bytes, (8 + 8 + 4 + 4) * 32);
  EXPECT_EQ(back.at("layers.0.self_attn.core").activation_bytes, (8 + 4 + 4 + 8 + 8 + 4 + 4) * 32);
  EXPECT_EQ(back.at("layers.0.mlp.act").activation_bytes, 5 * 12 * 32);
  EXPECT_EQ(total(costs(PassKind::kOptimizer, 0, llama), &OpCost::weight_bytes),
            static_cast<double>(parameters(Graph(llama))) * 28);
}

TEST(Training, NonsenseFromAnnotationsNeverGoesNegative) {
  for (const PassKind kind : {PassKind::kForward, PassKind::kBackward, PassKind::kOptimizer}) {
    for (const OpCost& cost : analyze(tiny_gpt2(), train(kind, -1, -5), 0)) {
      EXPECT_EQ(cost.flops, 0);
      EXPECT_GE(cost.weight_bytes, 0);
      EXPECT_EQ(cost.activation_bytes, 0);
    }
  }
}

}  // namespace
}  // namespace llmprof::model
