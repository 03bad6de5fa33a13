#include "analyze/design/cliffs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analyze/design/testing/small_model.h"

namespace llmprof::analyze::design {
namespace {

using testing::HasSubstr;

ModelSetup setup_of(std::int64_t batch, std::int64_t prompt, std::int64_t context) {
  ModelSetup out;
  out.subject = small_llama(), out.roof = small_roof();
  out.options.batch = batch, out.options.prompt = prompt, out.options.context = context;
  return out;
}

std::vector<Cliff> cliffs_of(const ModelSetup& setup, const CliffFacts& facts) {
  return cliffs(setup, must(make_design(setup.subject, setup.options, setup.roof)), facts);
}

const Cliff* find(const std::vector<Cliff>& all, std::string_view what) {
  const auto found = std::ranges::find_if(all, [&](const Cliff& each) { return each.what.starts_with(what); });
  return found == all.end() ? nullptr : &*found;
}

// 1024 x 1000 in tiles of 128: 8 x 8 tiles; 64 of 40 SMs are 1.6 waves, so 16 places of 80 are empty, and 24 of the
// 1024 columns that the tiles have.
TEST(Cliffs, Waves) {
  const Waves waves = waves_of(1024, 1000, 40);
  EXPECT_EQ(waves.tiles, 64);
  EXPECT_DOUBLE_EQ(waves.waves, 1.6);
  EXPECT_DOUBLE_EQ(waves.used, 64.0 / 80 * 1000 / 1024);
  EXPECT_DOUBLE_EQ(waves_of(1, 128, 1).used, 1.0 / 128);
  EXPECT_EQ(waves_of(0, 128, 1).tiles, 0);
}

TEST(Cliffs, BatchesOfGraphsArePadded) {
  CliffFacts facts{.engine = "vllm 0.19", .capture_sizes = {1, 2, 4, 8, 16, 24, 32, 40, 48}};
  const auto padded = cliffs_of(setup_of(33, 16, 64), facts);
  const Cliff* graphs = find(padded, "CUDA graphs");
  ASSERT_NE(graphs, nullptr);
  EXPECT_EQ(graphs->here, "batch 33 runs as 40");
  EXPECT_THAT(graphs->where, HasSubstr("32, 40, 48"));
  EXPECT_THAT(graphs->cost, HasSubstr("7 of 40 rows"));
  EXPECT_EQ(graphs->better, "batch=40");
  EXPECT_EQ(find(cliffs_of(setup_of(40, 16, 64), facts), "CUDA graphs")->better, "");
  const auto beyond = cliffs_of(setup_of(49, 16, 64), facts);
  EXPECT_THAT(find(beyond, "CUDA graphs")->cost, HasSubstr("one by one"));
  EXPECT_EQ(find(beyond, "CUDA graphs")->better, "batch=48");
}

// 1,025 blocks less the reserved one; 1,000 tokens need 63 blocks of 16: 16 requests. 20 requests: 51 blocks each.
TEST(Cliffs, BlocksOfTheEngine) {
  const CliffFacts facts{.engine = "vllm 0.19", .kv_blocks = 1025, .block_tokens = 16};
  const auto all = cliffs_of(setup_of(20, 16, 1000), facts);
  const Cliff* blocks = find(all, "KV blocks");
  ASSERT_NE(blocks, nullptr);
  EXPECT_THAT(blocks->here, HasSubstr("1260 of 1024 blocks"));
  EXPECT_EQ(blocks->where, "batch 16 at this context, context 816 at this batch");
  EXPECT_THAT(blocks->cost, HasSubstr("4 requests wait"));
  EXPECT_EQ(blocks->better, "batch=16");
}

TEST(Cliffs, LimitsOfTheEngine) {
  const CliffFacts facts{.engine = "vllm 0.19", .max_num_seqs = 16, .max_num_batched_tokens = 2048};
  const auto all = cliffs_of(setup_of(20, 512, 600), facts);
  EXPECT_THAT(find(all, "max_num_seqs")->cost, HasSubstr("4 requests wait"));
  EXPECT_THAT(find(all, "max_num_batched_tokens")->cost, HasSubstr("5 steps"));  // 10,240 tokens
  EXPECT_EQ(find(all, "max_num_batched_tokens")->better, "batch=4");
  EXPECT_EQ(find(cliffs_of(setup_of(4, 512, 600), facts), "max_num_batched_tokens"), nullptr);
}

TEST(Cliffs, MeasuredJumpsComeBeforeAssumedTiles) {
  CliffFacts facts{.units = 4};
  EXPECT_THAT(find(cliffs_of(setup_of(9, 16, 64), facts), "rows of products")->cost, HasSubstr("7 of 16 rows"));
  facts.jumps = {{4, 8, 100, 150}, {16, 24, 200, 400}};
  const auto before = cliffs_of(setup_of(9, 16, 64), facts);
  const Cliff* rows = find(before, "rows of products");
  EXPECT_EQ(rows->where, "between 16 and 24 rows");
  EXPECT_THAT(rows->cost, HasSubstr("50.0 % more rows take 100.0 % longer"));
  EXPECT_EQ(rows->better, "batch=16");
  EXPECT_EQ(find(cliffs_of(setup_of(20, 16, 64), facts), "rows of products")->better, "batch=16");
  EXPECT_EQ(find(cliffs_of(setup_of(32, 16, 64), facts), "rows of products"), nullptr);
}

// A vocabulary of 50,257 columns ends in the middle of a load, and of a tile.
TEST(Cliffs, AVocabularyThatFitsNoLoad) {
  ModelSetup setup = setup_of(1, 16, 64);
  setup.subject.config.vocab = 50257;
  const auto all = cliffs_of(setup, {.units = 4});
  const Cliff* vocab = find(all, "vocabulary");
  ASSERT_NE(vocab, nullptr);
  EXPECT_THAT(vocab->where, HasSubstr("16 bytes"));
  EXPECT_EQ(vocab->better, "vocab=50304");
  EXPECT_EQ(find(cliffs_of(setup_of(1, 16, 64), {.units = 4}), "vocabulary"), nullptr);  // 256
}

// The graph of the next size is priced, where it can be.
TEST(Cliffs, TheNextSizeIsPriced) {
  const auto all = cliffs_of(setup_of(3, 16, 64), {.engine = "vllm 0.19", .capture_sizes = {1, 2, 4}});
  EXPECT_THAT(find(all, "CUDA graphs")->cost, HasSubstr("(floor)"));
  EXPECT_NE(find(all, "memory"), nullptr);
}

}  // namespace
}  // namespace llmprof::analyze::design
