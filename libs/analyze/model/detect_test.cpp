// Models recognised by the sizes of the matrices that were multiplied by.

#include <gtest/gtest.h>

#include <gmock/gmock.h>

#include "analyze/model/detect_model.h"
#include "model/checkpoint/open_model.h"

namespace llmprof::analyze {

namespace {

using testing::Contains;
using testing::IsEmpty;

// Llama-3.2-1B: 16 layers of 2048; q and o 2048 x 2048, k and v 2048 x 512, gate and up 2048 x 8192, down back;
// 128,256 tokens. Every size also stands for the calls seen the other way round, here of 5 rows.
SizeCounts llama_1b(std::int64_t passes, std::int64_t layers = 16, std::int64_t vocab = 128256) {
  return {{{2048, 2048}, 2 * layers * passes},
          {{2048, 512}, 2 * layers * passes},
          {{2048, 8192}, 2 * layers * passes},
          {{8192, 2048}, layers * passes},
          {{2048, vocab}, passes},
          {{2048, 5}, 7 * layers * passes},
          {{8192, 5}, layers * passes}};
}

TEST(Recognise, ABuiltInModelByItsProducts) {
  const Recognised found = recognise(llama_1b(9));
  EXPECT_EQ(found.name, "llama-3.2-1b");
}

TEST(Recognise, FusedProductsToo) {
  const std::int64_t passes = 4;
  const SizeCounts fused{{{2048, 3072}, 16 * passes},  // q, k, v: 2048 + 512 + 512
                         {{2048, 2048}, 16 * passes},
                         {{2048, 16384}, 16 * passes},  // gate, up
                         {{8192, 2048}, 16 * passes},
                         {{2048, 128256}, passes}};
  EXPECT_EQ(recognise(fused).name, "llama-3.2-1b");
}

TEST(Recognise, NotWhatOnlyLooksSimilar) {
  EXPECT_EQ(recognise(llama_1b(9, 8)).name, "");  // half the layers for as many logits
  EXPECT_THAT(recognise(llama_1b(9, 8)).near, Contains("llama-3.2-1b"));
  EXPECT_EQ(recognise(llama_1b(9, 16, 32000)).name, "");  // another vocabulary
  SizeCounts uneven = llama_1b(9);
  uneven[{8192, 2048}] += 1;
  EXPECT_EQ(recognise(uneven).name, "");
  EXPECT_EQ(recognise({{{100, 100}, 3}}).name, "");
  EXPECT_THAT(recognise({{{100, 100}, 3}}).near, IsEmpty());
  EXPECT_EQ(recognise({}).name, "");
}

// Llama-3.2-1B on two devices: each has half of the heads, of the FFN and of the vocabulary.
TEST(Recognise, OneOfTwoTensorParallelRanks) {
  const std::int64_t passes = 4;
  const SizeCounts half{{{2048, 1024}, 16 * passes},      // q
                        {{2048, 256}, 2 * 16 * passes},   // k, v
                        {{1024, 2048}, 16 * passes},      // o
                        {{2048, 4096}, 2 * 16 * passes},  // gate, up
                        {{4096, 2048}, 16 * passes},     {{2048, 64128}, passes}};
  EXPECT_EQ(recognise(half).name, "llama-3.2-1b");
  const auto config = model::open_model("llama-3.2-1b");
  ASSERT_TRUE(config);
  EXPECT_EQ(tensor_ranks(config->config, half), 2);
  EXPECT_EQ(tensor_ranks(config->config, llama_1b(9)), 1);
  EXPECT_EQ(tensor_ranks(config->config, {{{100, 100}, 3}}), std::nullopt);
}

TEST(ShareCalled, OfTheProductsOfAModel) {
  model::Config config;
  config.family = "llama";
  config.hidden = 8;
  config.vocab = 50;
  set_layers(config, 2, {.attention = {.heads = 4, .kv_heads = 2, .qk_dim = 2, .v_dim = 2}, .mlp = {.width = 16}});
  EXPECT_EQ(share_called(config, {}), 0);
  // q and o of two layers are 4 of 2 x 7 + 1 products.
  EXPECT_DOUBLE_EQ(share_called(config, {{{8, 8}, 4}}), 4.0 / 15);
  EXPECT_EQ(share_called(config, {{{8, 8}, 4}, {{8, 4}, 4}, {{8, 16}, 4}, {{16, 8}, 2}, {{8, 50}, 1}}), 1);
}

}  // namespace

}  // namespace llmprof::analyze
