#include "model/change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/memory.h"
#include "model/model.h"
#include "model/zoo/zoo.h"

namespace llmprof::model {
namespace {

using testing::HasSubstr;

Config llama() { return *config_of(*find_in_zoo("llama-3.1-8b")); }

// 2 x heads x 128 values of 2 bytes, in 32 layers.
TEST(Change, KeyValueHeadsAreTheCache) {
  Config config = llama();
  EXPECT_DOUBLE_EQ(kv_bytes_per_token(Graph(config)), 2 * 8 * 128 * 2 * 32);
  ASSERT_TRUE(change(config, "kv_heads", "4"));
  EXPECT_DOUBLE_EQ(kv_bytes_per_token(Graph(config)), 2 * 4 * 128 * 2 * 32);
  ASSERT_TRUE(change(config, "kv_dtype", "float8"));
  EXPECT_DOUBLE_EQ(kv_bytes_per_token(Graph(config)), 2 * 4 * 128 * 32);
}

// 128 x 4096 rows more, in the embedding and in the logits' product, of 2 bytes each.
TEST(Change, AVocabularyIsPadded) {
  Config config = llama();
  const double before = weights_bytes(Graph(config));
  ASSERT_TRUE(change(config, "vocab", "128384"));
  EXPECT_DOUBLE_EQ(weights_bytes(Graph(config)) - before, 2.0 * 128 * 4096 * 2);
}

TEST(Change, MoreLayersRepeatThoseThatAreThere) {
  Config config = llama();
  set_layers(config, 2, config.kinds.front());
  config.kinds.push_back(config.kinds.front());
  config.kinds.back().attention.window = 64;
  config.kind_of_layer = {0, 1};
  ASSERT_TRUE(change(config, "layers", "5"));
  EXPECT_EQ(config.kind_of_layer, (std::vector<std::uint32_t>{0, 1, 0, 1, 0}));
}

TEST(Change, WhatCannotBeSaysWhy) {
  Config config = llama();
  EXPECT_THAT(change(config, "kv_heads", "5").error().message, HasSubstr("32 heads cannot share 5"));
  EXPECT_THAT(change(config, "heads", "33").error().message, HasSubstr("evenly"));
  EXPECT_THAT(change(config, "layers", "0").error().message, HasSubstr("not a number from 1"));
  EXPECT_THAT(change(config, "experts_per_token", "2").error().message, HasSubstr("no experts"));
  EXPECT_FALSE(change(config, "dtype", "float99"));
  EXPECT_FALSE(change(config, "batch", "2"));
  EXPECT_TRUE(is_change_key("arithmetic"));
  EXPECT_FALSE(is_change_key("batch"));
}

}  // namespace
}  // namespace llmprof::model
