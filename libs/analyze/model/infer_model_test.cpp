// Models told from the products of one pass.

#include <gtest/gtest.h>

#include <gmock/gmock.h>

#include "analyze/model/detect_model.h"
#include "model/model.h"

namespace llmprof::analyze {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr std::int64_t kRows = 512;

std::vector<PassProduct> pass_of(int layers, const std::vector<MatrixSize>& layer,
                                 const std::vector<PassProduct>& behind) {
  std::vector<PassProduct> pass;
  for (int i = 0; i < layers; ++i) {
    for (const MatrixSize& size : layer) pass.push_back({size, kRows});
  }
  pass.insert(pass.end(), behind.begin(), behind.end());
  return pass;
}

const std::vector<PassProduct> kLogits{{{64, 1000}, kRows}};

model::Config config_of(const ShapesModel& found) {
  const Result<model::Config> config = model::parse_config(found.config(), "inferred");
  EXPECT_TRUE(config) << config.error().message;
  return config ? *config : model::Config{};
}

TEST(InferModel, ALlamaWithGroupedQueries) {
  const std::vector<MatrixSize> layer{{64, 64}, {64, 32}, {64, 32}, {64, 64}, {64, 176}, {64, 176}, {176, 64}};
  const Inferred found = infer_model(pass_of(3, layer, kLogits), true);
  ASSERT_TRUE(found.model) << found.why;
  EXPECT_EQ(found.model->words(),
            "3 layers, hidden 64, queries 64, keys and values 32, FFN 176 (gated), vocabulary 1000; heads unknown");
  const model::Config config = config_of(*found.model);
  EXPECT_EQ(config.layers(), 3);
  EXPECT_TRUE(config.caveats.empty());
  // What the products cost does not depend on the size of the heads.
  const double products = 2.0 * kRows * (3 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 176) + 64 * 1000);
  const double attention = 3 * 2.0 * 2 * 64 * kRows;  // one key for each of the rows: sequences of one token
  EXPECT_EQ(model::total(model::Graph(config), model::train(model::PassKind::kForward, kRows, 1), {}).flops,
            products + attention);
}

TEST(InferModel, AGpt2WithFusedProducts) {
  const Inferred found = infer_model(pass_of(2, {{64, 192}, {64, 64}, {64, 256}, {256, 64}}, kLogits), true);
  ASSERT_TRUE(found.model);
  EXPECT_EQ(found.model->words(), "2 layers, hidden 64, FFN 256 (not gated), vocabulary 1000; heads unknown");
  EXPECT_FALSE(found.model->gated);
  EXPECT_EQ(found.model->kv, 64);
}

TEST(InferModel, AdaptersOfLowRank) {
  const std::vector<MatrixSize> layer{{64, 64}, {64, 4},  {4, 64},   {64, 32},  {64, 32}, {64, 4},
                                      {4, 32},  {64, 64}, {64, 176}, {64, 176}, {176, 64}};
  Inferred found = infer_model(pass_of(3, layer, kLogits), true);
  ASSERT_TRUE(found.model);
  EXPECT_THAT(found.model->adapters, ElementsAre(Pair("self_attn.q_proj", 4), Pair("self_attn.v_proj", 4)));
  found.model->frozen = true;
  EXPECT_THAT(found.model->words(), HasSubstr("adapters of rank 4 on self_attn.q_proj, self_attn.v_proj, which alone"));
  EXPECT_EQ(model::Graph(config_of(*found.model)).groups().front().ops.size(), 15u);
}

// Pooled and classified: no vocabulary, and attention that sees whole sequences.
TEST(InferModel, AnEncoder) {
  const std::vector<MatrixSize> layer{{64, 64}, {64, 64}, {64, 64}, {64, 64}, {64, 256}, {256, 64}};
  const std::vector<PassProduct> head{{{64, 64}, 4}, {{64, 2}, 4}};
  const Inferred found = infer_model(pass_of(2, layer, head), true);
  ASSERT_TRUE(found.model);
  EXPECT_EQ(found.model->vocab, 0);
  EXPECT_FALSE(found.model->causal);
  EXPECT_FALSE(config_of(*found.model).has_last);
  EXPECT_FALSE(infer_model(pass_of(2, layer, head), false).model);  // nothing says that it ends there
}

TEST(InferModel, WhatHasNoPlaceLeavesItUnknown) {
  const std::vector<MatrixSize> layer{{64, 64}, {64, 32}, {64, 32}, {64, 64}, {64, 176}, {64, 176}, {176, 64}};
  EXPECT_FALSE(infer_model({}, true).model);
  EXPECT_FALSE(infer_model(pass_of(1, layer, kLogits), true).model);  // one layer does not repeat
  std::vector<PassProduct> pass = pass_of(3, layer, kLogits);
  pass[9].size = {64, 48};  // one layer is otherwise
  EXPECT_FALSE(infer_model(pass, true).model);
  pass = pass_of(3, layer, kLogits);
  pass[8].rows = 2;
  EXPECT_FALSE(infer_model(pass, true).model);
  // Attention twice, the second to another sequence.
  const std::vector<MatrixSize> decoder{{64, 64}, {64, 64}, {64, 64},  {64, 64},
                                        {64, 64}, {64, 64}, {64, 176}, {176, 64}};
  EXPECT_FALSE(infer_model(pass_of(3, decoder, kLogits), true).model);
  EXPECT_FALSE(infer_model(pass_of(3, layer, {{{64, 100}, 1}}), false).model);  // classes, of a pass alone
}

TEST(InferModel, ExpertsThatAreNotSeenAreNamed) {
  const Inferred found = infer_model(pass_of(3, {{64, 64}, {64, 32}, {64, 32}, {64, 64}, {64, 8}}, kLogits), true);
  EXPECT_FALSE(found.model);
  EXPECT_THAT(found.why, HasSubstr("8 experts"));
}

TEST(InferModel, ShareOfARun) {
  const Inferred found = infer_model(pass_of(2, {{64, 192}, {64, 64}, {64, 256}, {256, 64}}, kLogits), true);
  ASSERT_TRUE(found.model);
  // Forward, the gradients of input and weights, and something else of the same number of FLOPs.
  const SizedCalls forward{192, kRows, 64, 2}, input{64, kRows, 192, 2}, weights{64, 192, kRows, 2},
      other{96, kRows, 128, 2};
  EXPECT_EQ(explained(*found.model, {forward, input, weights}), 1);
  EXPECT_DOUBLE_EQ(explained(*found.model, {forward, input, weights, other}), 0.75);
  EXPECT_EQ(explained(*found.model, {}), 0);
}

TEST(InferModel, HeadsFromNamesOfKernels) {
  EXPECT_EQ(
      head_dim_of_kernel("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_"
                         "kernel0_0"),
      64);
  EXPECT_EQ(head_dim_of_kernel("void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false>, true>"), 128);
  EXPECT_EQ(head_dim_of_kernel("nvjet_sm90_tst_96x64_64x7_2x1_v_bz_TNN"), 0);
  EXPECT_EQ(head_dim_of_kernel("_sdpa_"), 0);
}

}  // namespace

}  // namespace llmprof::analyze
