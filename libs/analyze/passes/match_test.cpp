// Sequences of calls as engines make them, matched to small models. Every expected module follows from the sequence.

#include "analyze/passes/match.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "analyze/passes/match_stages.h"

namespace llmprof::analyze {
namespace {

using testing::ElementsAre;
using Order = CallShape::Order;

// Llama: hidden 8, 4 heads of 2, MLP 16, vocabulary 50.
model::Graph llama(std::int64_t kv_heads, std::int64_t layers = 2) {
  model::Config config;
  config.family = "llama";
  config.hidden = 8;
  config.vocab = 50;
  set_layers(config, layers,
             {.attention = {.heads = 4, .kv_heads = kv_heads, .qk_dim = 2, .v_dim = 2}, .mlp = {.width = 16}});
  return model::Graph(config);
}

model::Graph gpt2(std::int64_t layers = 2) {
  model::Config config;
  config.family = "gpt2";
  config.hidden = 8;
  config.vocab = 50;
  config.positions = 64;
  config.position_table = true;
  config.tied_embeddings = true;
  set_layers(config, layers,
             {.attention = {.heads = 4, .kv_heads = 4, .qk_dim = 2, .v_dim = 2, .rope = false},
              .mlp = {.width = 32, .gated = false}});
  return model::Graph(config);
}

// A thread that makes one call after another, 10 ns each, 10 ns apart.
class Program {
 public:
  void call(std::int64_t m, std::int64_t n, std::int64_t k, Order order = Order::kRowMajor) {
    const CallShape shape{.m = m, .n = n, .k = k, .order = order};
    const auto found = std::find(calls.shapes.begin(), calls.shapes.end(), shape);
    calls.shape.push_back(static_cast<std::uint32_t>(found - calls.shapes.begin()));
    if (found == calls.shapes.end()) calls.shapes.push_back(shape);
    calls.process_id.push_back(1);
    calls.thread_id.push_back(1);
    calls.begin_ns.push_back(now);
    calls.end_ns.push_back(now + 10);
    calls.segment.push_back(0);
    now += 20;
  }
  // x of `rows` times a matrix: as one product, or up to 4 rows as one product with a vector for each.
  void product(std::int64_t rows, std::int64_t in, std::int64_t out) {
    if (rows > 4) return call(rows, out, in);
    for (std::int64_t i = 0; i < rows; ++i) call(out, 1, in);
  }
  void llama_pass(std::int64_t rows, std::int64_t kv, std::int64_t logits, std::int64_t layers = 2) {
    for (std::int64_t i = 0; i < layers; ++i) {
      product(rows, 8, 8);
      product(rows, 8, kv);
      product(rows, 8, kv);
      if (rows > 4) call(rows, rows, 2), call(rows, 2, rows);  // attention of one head
      product(rows, 8, 8);
      product(rows, 8, 16);
      product(rows, 8, 16);
      product(rows, 16, 8);
    }
    if (logits > 0) product(logits, 8, 50);
  }

  Matches match(const model::Graph& graph, Expect expect = Expect::kAny) {
    products = products_of(graph, count_sizes(calls, Reading::kUsual));
    return match_calls(products, calls, {expect});
  }
  std::vector<std::string> modules(const Matches& matches, std::int32_t pass) const {
    std::vector<std::string> names;
    for (const CallMatch& match : matches.calls) {
      if (match.pass == pass)
        names.push_back(match.slot != kNone ? products.slots[match.slot].module : products.cores[match.core].module);
    }
    return names;
  }

  Calls calls;
  Products products;
  std::int64_t now = 0;
};

TEST(Match, APassOverLlamaFromPrefillToDecode) {
  Program program;
  program.llama_pass(6, 4, 2);
  program.llama_pass(2, 4, 2);
  program.llama_pass(2, 4, 2);
  const Matches matches = program.match(llama(2));
  ASSERT_EQ(matches.passes.size(), 3u);
  EXPECT_EQ(matches.passes[0].rows, 6);
  EXPECT_EQ(matches.passes[0].logits_rows, 2);
  EXPECT_EQ(matches.passes[0].share, 1);
  EXPECT_EQ(matches.passes[1].rows, 2);
  EXPECT_EQ(matches.passes[2].logits_rows, 2);
  EXPECT_THAT(
      program.modules(matches, 0),
      ElementsAre("layers.0.self_attn.q_proj", "layers.0.self_attn.k_proj", "layers.0.self_attn.v_proj",
                  "layers.0.self_attn.core", "layers.0.self_attn.core", "layers.0.self_attn.o_proj",
                  "layers.0.mlp.gate_proj", "layers.0.mlp.up_proj", "layers.0.mlp.down_proj",
                  "layers.1.self_attn.q_proj", "layers.1.self_attn.k_proj", "layers.1.self_attn.v_proj",
                  "layers.1.self_attn.core", "layers.1.self_attn.core", "layers.1.self_attn.o_proj",
                  "layers.1.mlp.gate_proj", "layers.1.mlp.up_proj", "layers.1.mlp.down_proj", "lm_head", "lm_head"));
  // Two rows: two calls for each product, k's before v's although their shapes are the same.
  const std::vector<std::string> decode = program.modules(matches, 1);
  ASSERT_EQ(decode.size(), 2u * 7 * 2 + 2);
  EXPECT_EQ(decode[2], "layers.0.self_attn.k_proj");
  EXPECT_EQ(decode[3], "layers.0.self_attn.k_proj");
  EXPECT_EQ(decode[4], "layers.0.self_attn.v_proj");
  EXPECT_EQ(decode[5], "layers.0.self_attn.v_proj");
}

TEST(Match, EqualHeadsMakeFourProductsAlike) {
  Program program;
  program.llama_pass(2, 8, 2);  // q, k, v, o: eight calls of one shape
  const Matches matches = program.match(llama(4));
  const std::vector<std::string> names = program.modules(matches, 0);
  ASSERT_EQ(names.size(), 30u);
  for (const auto& [place, name] : {std::pair{1, "q"}, {2, "k"}, {5, "v"}, {6, "o"}, {7, "o"}})
    EXPECT_EQ(names[place], std::string("layers.0.self_attn.") + name + "_proj") << place;
}

TEST(Match, FusedProductsAreOne) {
  Program program;
  for (int layer = 0; layer < 2; ++layer) {
    program.call(6, 16, 8);  // q, k and v: 8 + 4 + 4
    program.call(6, 8, 8);
    program.call(6, 32, 8);  // gate and up
    program.call(6, 8, 16);
  }
  program.call(1, 50, 8);
  const Matches matches = program.match(llama(2));
  EXPECT_THAT(program.modules(matches, 0),
              ElementsAre("layers.0.self_attn.qkv_proj", "layers.0.self_attn.o_proj", "layers.0.mlp.gate_up_proj",
                          "layers.0.mlp.down_proj", "layers.1.self_attn.qkv_proj", "layers.1.self_attn.o_proj",
                          "layers.1.mlp.gate_up_proj", "layers.1.mlp.down_proj", "lm_head"));
  EXPECT_EQ(program.products.fused.at("self_attn.k_proj"), "self_attn.qkv_proj");
  EXPECT_EQ(program.products.fused.at("mlp.gate_proj"), "mlp.gate_up_proj");
}

TEST(Match, ColumnMajorCallsAreTheSameProductsFlipped) {
  Program program;
  for (int layer = 0; layer < 2; ++layer) {
    for (const auto& [in, out] : {MatrixSize{8, 24}, {8, 8}, {8, 32}, {32, 8}})
      program.call(out, 5, in, Order::kColumnMajor);
  }
  program.call(50, 5, 8, Order::kColumnMajor);
  const Matches matches = program.match(gpt2());
  ASSERT_EQ(matches.passes.size(), 1u);
  EXPECT_EQ(matches.passes[0].rows, 5);
  EXPECT_EQ(matches.passes[0].share, 1);
}

TEST(Match, OtherCallsBetweenAreLeftAlone) {
  Program program;
  program.call(100, 100, 100);
  for (int layer = 0; layer < 2; ++layer) {
    program.call(6, 24, 8);
    program.call(7, 7, 7);
    for (const auto& [in, out] : {MatrixSize{8, 8}, {8, 32}, {32, 8}}) program.call(6, out, in);
  }
  program.call(6, 24, 8);  // a pass that ends here: too little of it
  const Matches matches = program.match(gpt2());
  ASSERT_EQ(matches.passes.size(), 2u);
  EXPECT_NEAR(matches.passes[0].share, 8.0 / 9, 1e-12);  // without logits
  EXPECT_LT(matches.passes[1].share, 0.2);
  EXPECT_EQ(matches.calls[0].pass, kNone);
  EXPECT_EQ(matches.calls[2].pass, kNone);
}

TEST(Match, ARecordingThatBeginsWithinAPassFindsTheNext) {
  Program program;
  program.product(6, 8, 16);
  program.product(6, 16, 8);
  program.llama_pass(6, 4, 1, 1);  // the last layer: taken for the first, until the logits come too early
  program.llama_pass(6, 4, 1);
  const Matches matches = program.match(llama(2));
  ASSERT_EQ(matches.passes.size(), 2u);
  EXPECT_LT(matches.passes[0].share, kLeastShareOfPass);
  EXPECT_EQ(matches.passes[1].share, 1);
}

void train_step(Program& program, std::int64_t rows, std::int64_t tokens) {
  const std::vector<MatrixSize> layer{{8, 24}, {8, 8}, {8, 32}, {32, 8}};
  const auto attention = [&](int products) {
    for (std::int64_t i = 0; i < 4 * rows / tokens * products / 2; ++i) {
      program.call(tokens, tokens, 2);
      program.call(tokens, 2, tokens);
    }
  };
  for (int l = 0; l < 2; ++l) {
    for (std::size_t i = 0; i < layer.size(); ++i) {
      program.call(rows, layer[i].second, layer[i].first);
      if (i == 0) attention(2);
    }
  }
  program.call(rows, 50, 8);
  const auto back = [&](const MatrixSize& size) {
    program.call(rows, size.first, size.second);  // dx = dy W
    program.call(size.second, size.first, rows);  // dW = dy^T x
  };
  back({8, 50});
  for (int l = 0; l < 2; ++l) {
    for (std::size_t i = layer.size(); i-- > 0;) {
      back(layer[i]);
      if (i == 1) attention(4);
    }
  }
}

TEST(Match, TrainingGoesForwardAndBack) {
  Program program;
  train_step(program, 12, 6);
  train_step(program, 12, 6);
  const Matches matches = program.match(gpt2());
  ASSERT_EQ(matches.passes.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(matches.passes[i].backward, i % 2 == 1);
    EXPECT_EQ(matches.passes[i].share, 1) << i;
    EXPECT_EQ(matches.passes[i].rows, 12) << i;
  }
  EXPECT_EQ(matches.passes[0].square, 6);
  for (const CallMatch& match : matches.calls) EXPECT_NE(match.pass, kNone);
  const std::vector<std::string> names = program.modules(matches, 1);
  EXPECT_THAT(std::vector(names.begin(), names.begin() + 6),
              ElementsAre("lm_head", "lm_head", "h.1.mlp.c_proj", "h.1.mlp.c_proj", "h.1.mlp.c_fc", "h.1.mlp.c_fc"));
  EXPECT_THAT(std::vector(names.end() - 2, names.end()), ElementsAre("h.0.attn.c_attn", "h.0.attn.c_attn"));

  trace::Strings strings;
  const InferredSteps steps = infer_steps(matches, {{1, 1}}, strings);
  ASSERT_EQ(steps.steps.size(), 4u);
  EXPECT_EQ(strings.text(steps.steps[0].stage), "forward");
  EXPECT_EQ(strings.text(steps.steps[1].stage), "backward");
  EXPECT_EQ(steps.steps[1].number, 0);
  EXPECT_EQ(steps.steps[3].number, 1);
  EXPECT_EQ(steps.steps[0].size.batch, 2);
  EXPECT_EQ(steps.steps[1].size.tokens, 6);
}

TEST(Match, SequencesAsLongAsAHeadIsWide) {
  Program program;
  train_step(program, 12, 2);  // heads of 2: both products of attention are [2, 2] x [2, 2]
  EXPECT_EQ(program.match(gpt2()).passes.at(0).square, 2);
}

// Columns first, as cuBLAS is called: forward and backward passes are segments of their own.
class Trained {
 public:
  using enum CallShape::Transposed;
  void forward(int segment, std::int64_t in, std::int64_t out) { call(segment, {.m = out, .n = 16, .k = in}, kA); }
  void input(std::int64_t in, std::int64_t out) { call(1, {.m = in, .n = 16, .k = out}, kNeither); }
  void weight(std::int64_t in, std::int64_t out) { call(1, {.m = in, .n = out, .k = 16}, kB); }
  void forward_pass() {
    for (int layer = 0; layer < 2; ++layer) {
      for (const auto& [in, out] : kLayer) forward(0, in, out);
    }
    forward(0, 8, 50);
  }
  Matches match() {
    const std::vector<Expect> expect{Expect::kForward, Expect::kBackward};
    products = products_of(llama(2), count_sizes(calls, Reading::kUsual, expect));
    return match_calls(products, calls, expect);
  }
  // q, k, v, o, gate, up, down; as many rows as q, k and v are wide together.
  static constexpr std::array<MatrixSize, 7> kLayer{{{8, 8}, {8, 4}, {8, 4}, {8, 8}, {8, 16}, {8, 16}, {16, 8}}};
  Calls calls;
  Products products;

 private:
  void call(int segment, CallShape shape, CallShape::Transposed transposed) {
    shape.order = Order::kColumnMajor;
    shape.transposed = transposed;
    const auto found = std::find(calls.shapes.begin(), calls.shapes.end(), shape);
    calls.shape.push_back(static_cast<std::uint32_t>(found - calls.shapes.begin()));
    if (found == calls.shapes.end()) calls.shapes.push_back(shape);
    calls.process_id.push_back(1);
    calls.thread_id.push_back(1 + segment);
    calls.begin_ns.push_back(20 * static_cast<std::int64_t>(calls.shape.size()));
    calls.end_ns.push_back(calls.begin_ns.back() + 10);
    calls.segment.push_back(segment);
  }
};

// Each layer is computed again before its gradients, but for its last product, which no gradient needs.
TEST(Match, LayersThatAreComputedAgainOnTheWayBack) {
  Trained program;
  program.forward_pass();
  program.weight(8, 50), program.input(8, 50);
  for (int layer = 0; layer < 2; ++layer) {
    for (std::size_t i = 0; i + 1 < program.kLayer.size(); ++i)
      program.forward(1, program.kLayer[i].first, program.kLayer[i].second);
    for (std::size_t i = program.kLayer.size(); i-- > 0;) {
      program.weight(program.kLayer[i].first, program.kLayer[i].second);
      program.input(program.kLayer[i].first, program.kLayer[i].second);
    }
  }
  const Matches matches = program.match();
  EXPECT_TRUE(program.products.fused.empty());  // 16 rows are not a product that is 16 wide
  ASSERT_EQ(matches.passes.size(), 2u);
  EXPECT_EQ(matches.passes[0].share, 1);
  EXPECT_EQ(matches.passes[1].share, 1);
  EXPECT_EQ(std::ranges::count(matches.calls, true, &CallMatch::recomputed), 12);
  std::map<std::string, int> times;
  for (const CallMatch& match : matches.calls) {
    ASSERT_NE(match.slot, kNone);
    times[program.products.slots[static_cast<std::size_t>(match.slot)].module] += match.recomputed ? 10 : 1;
  }
  for (const auto& [module, count] : times)
    EXPECT_EQ(count, module == "lm_head" || module.ends_with("down_proj") ? 3 : 13) << module;
}

// Weights that are not trained have no gradients: the way back has one product for each, not two.
TEST(Match, FrozenWeightsHaveOneProductOnTheWayBack) {
  Trained program;
  program.forward_pass();
  program.input(8, 50);
  for (int layer = 0; layer < 2; ++layer) {
    for (std::size_t i = program.kLayer.size(); i-- > 0;)
      program.input(program.kLayer[i].first, program.kLayer[i].second);
  }
  const Matches matches = program.match();
  ASSERT_EQ(matches.passes.size(), 2u);
  EXPECT_EQ(matches.passes[1].share, 1);
  for (const CallMatch& match : matches.calls) EXPECT_NE(match.slot, kNone);
}

TEST(Match, StagesFromRows) {
  Program program;
  program.llama_pass(6, 4, 2);  // two sequences of three
  program.llama_pass(2, 4, 2);
  program.llama_pass(2, 4, 2);
  program.llama_pass(8, 4, 8);  // logits for every position: what follows tells that there were four sequences
  program.llama_pass(4, 4, 4);
  trace::Strings strings;
  const InferredSteps inferred = infer_steps(program.match(llama(2)), {{1, 7}}, strings);
  ASSERT_EQ(inferred.steps.size(), 5u);
  const auto told = [&](int i) {
    const Step& step = inferred.steps[i];
    return fmt::format("{} {}x{} {}", strings.text(step.stage), step.size.batch.value_or(0),
                       step.size.tokens.value_or(0), step.size.context.value_or(0));
  };
  EXPECT_EQ(told(0), "prefill 2x3 3");
  EXPECT_EQ(told(1), "decode 2x1 4");
  EXPECT_EQ(told(2), "decode 2x1 5");
  EXPECT_EQ(told(3), "prefill 4x2 2");
  EXPECT_EQ(told(4), "decode 4x1 3");
  EXPECT_EQ(inferred.steps[0].process_id, 7);
  EXPECT_EQ(inferred.steps[0].end_ns, inferred.steps[1].begin_ns);  // sampling is in between
  EXPECT_LT(inferred.steps[2].end_ns, inferred.steps[3].begin_ns);  // a new prompt is not
  EXPECT_DOUBLE_EQ(inferred.steps[0].confidence, kMatchedConfidence);
}

// Prompts of 7 tokens in all, then a token of each; one more prompt joins while they go on; one ends.
TEST(Match, SequencesOfDifferentLengths) {
  Program program;
  program.llama_pass(7, 4, 2);
  program.llama_pass(2, 4, 2);
  program.llama_pass(2, 4, 2);
  program.llama_pass(8, 4, 3);
  program.llama_pass(3, 4, 3);
  program.llama_pass(2, 4, 2);
  program.llama_pass(2, 4, 2);
  trace::Strings strings;
  const InferredSteps inferred = infer_steps(program.match(llama(2)), {{1, 1}}, strings);
  ASSERT_EQ(inferred.steps.size(), 7u);
  std::vector<std::string> stages;
  std::vector<std::array<std::int64_t, 4>> sizes;
  for (const Step& step : inferred.steps) {
    stages.emplace_back(strings.text(step.stage));
    sizes.push_back({step.size.batch.value_or(0), step.size.rows.value_or(0), step.size.contexts.value_or(0),
                     step.size.contexts_most.value_or(0)});
  }
  EXPECT_THAT(stages, ElementsAre("prefill", "decode", "decode", "mixed", "decode", "decode", "decode"));
  using Size = std::array<std::int64_t, 4>;
  EXPECT_THAT(sizes, ElementsAre(Size{2, 7, 7, 7}, Size{2, 0, 9, 9}, Size{2, 0, 11, 11}, Size{3, 8, 8, 19},
                                 Size{3, 0, 11, 22}, Size{2, 0, 2, 24}, Size{2, 0, 4, 26}));
}

TEST(Match, WhatIsNotThereIsNotGuessed) {
  Program program;
  for (int i = 0; i < 30; ++i) program.call(100, 100, 100);
  EXPECT_TRUE(program.match(llama(2)).passes.empty());
  EXPECT_TRUE(Program().match(llama(2)).passes.empty());
  // One pass whose rows are all sampled: a prompt or a token of several sequences, nothing tells which.
  Program one;
  one.llama_pass(3, 4, 3);
  trace::Strings strings;
  const InferredSteps inferred = infer_steps(one.match(llama(2)), {{1, 1}}, strings);
  ASSERT_EQ(inferred.steps.size(), 1u);
  EXPECT_EQ(strings.text(inferred.steps[0].stage), "other");
  EXPECT_FALSE(inferred.steps[0].size.batch);
}

}  // namespace
}  // namespace llmprof::analyze
