#include "serving/blocks.h"

#include <gtest/gtest.h>

#include <unordered_map>

#include "serving/random.h"

namespace llmprof::serving {
namespace {

TEST(Blocks, TheNullBlockIsNeverHandedOut) {
  BlockPool pool(4);
  EXPECT_EQ(pool.usable(), 3);
  EXPECT_EQ(pool.take(), 1);
  EXPECT_EQ(pool.take(), 2);
  EXPECT_EQ(pool.take(), 3);
  EXPECT_EQ(pool.free(), 0);
}

TEST(Blocks, TheOneFreeForLongestIsReusedFirstAndTailsBeforeHeads) {
  BlockPool pool(4);
  std::vector<BlockId> first{pool.take(), pool.take()};  // 1 2
  std::vector<BlockId> second{pool.take()};              // 3
  pool.release_all(second);
  pool.release_all(first);
  EXPECT_TRUE(first.empty());
  EXPECT_EQ(pool.take(), 3);
  EXPECT_EQ(pool.take(), 2);
  EXPECT_EQ(pool.take(), 1);
}

TEST(Blocks, ContentIsFoundUntilItsBlockIsReused) {
  BlockPool pool(3);
  const BlockId block = pool.take();
  pool.remember(block, 77);
  EXPECT_EQ(pool.find(77), block);
  pool.release(block);
  EXPECT_EQ(pool.find(77), block);
  EXPECT_NE(pool.take(), block);  // the other one was free for longer
  EXPECT_EQ(pool.find(77), block);
  EXPECT_EQ(pool.take(), block);
  EXPECT_EQ(pool.find(77), kNoBlock);
}

TEST(Blocks, SharedBlocksAreFreeWhenTheLastUserLeaves) {
  BlockPool pool(3);
  const BlockId block = pool.take();
  pool.remember(block, 5);
  pool.share(block);
  EXPECT_EQ(pool.references(block), 2);
  pool.release(block);
  EXPECT_EQ(pool.free(), 1);
  pool.release(block);
  EXPECT_EQ(pool.free(), 2);
  pool.share(block);  // out of the middle of the free list
  EXPECT_EQ(pool.free(), 1);
  EXPECT_NE(pool.take(), block);
  EXPECT_EQ(pool.free(), 0);
}

TEST(Blocks, ContentThatIsThereStaysWhereItIs) {
  BlockPool pool(3);
  const BlockId one = pool.take(), two = pool.take();
  pool.remember(one, 9);
  pool.remember(two, 9);
  EXPECT_EQ(pool.find(9), one);
  pool.release(two);
  EXPECT_EQ(pool.take(), two);
  EXPECT_EQ(pool.find(9), one);
}

// The map against the standard one, with keys that collide.
TEST(Blocks, TheMapIsAMap) {
  BlockMap map(64);
  std::unordered_map<std::uint64_t, BlockId> expected;
  Random random(3);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t key = random.bits() % 200;
    if (random.uniform() < 0.5 && expected.size() < 64) {
      EXPECT_EQ(map.insert(key, i), expected.emplace(key, i).second);
    } else {
      map.erase(key);
      expected.erase(key);
    }
    const std::uint64_t probe = random.bits() % 200;
    const auto found = expected.find(probe);
    ASSERT_EQ(map.find(probe), found == expected.end() ? kNoBlock : found->second);
  }
}

}  // namespace
}  // namespace llmprof::serving
