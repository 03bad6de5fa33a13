#include "serving/blocks.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"

namespace llmprof::serving {

BlockMap::BlockMap(std::int64_t most_entries) {
  // At most half full: probes stay short.
  const std::size_t slots = std::bit_ceil(static_cast<std::size_t>(std::max<std::int64_t>(most_entries, 4)) * 2);
  slots_.resize(slots);
  mask_ = slots - 1;
  shift_ = 64 - std::countr_zero(slots);
}

bool BlockMap::insert(std::uint64_t key, BlockId block) {
  std::size_t at = home(key);
  for (; slots_[at].block != kNoBlock; at = (at + 1) & mask_) {
    if (slots_[at].key == key) return false;
  }
  slots_[at] = {key, block};
  return true;
}

void BlockMap::erase(std::uint64_t key) {
  std::size_t hole = home(key);
  for (; slots_[hole].key != key || slots_[hole].block == kNoBlock; hole = (hole + 1) & mask_) {
    if (slots_[hole].block == kNoBlock) return;
  }
  // Entries behind the hole that may stand in it move up: no tombstones, so the map never has to be rebuilt.
  for (std::size_t at = (hole + 1) & mask_; slots_[at].block != kNoBlock; at = (at + 1) & mask_) {
    const std::size_t distance = (at - home(slots_[at].key)) & mask_;
    if (distance < ((at - hole) & mask_)) continue;
    slots_[hole] = slots_[at];
    hole = at;
  }
  slots_[hole].block = kNoBlock;
}

BlockPool::BlockPool(std::int64_t blocks)
    : nodes_(static_cast<std::size_t>(std::max<std::int64_t>(blocks, 1)) + 1), map_(blocks) {
  sentinel_ = static_cast<BlockId>(nodes_.size() - 1);
  node(sentinel_).before = node(sentinel_).after = sentinel_;
  for (BlockId block = 1; block < sentinel_; ++block) append(block);
}

void BlockPool::unlink(BlockId block) {
  Node& gone = node(block);
  node(gone.before).after = gone.after;
  node(gone.after).before = gone.before;
  --free_;
}

void BlockPool::append(BlockId block) {
  Node& added = node(block);
  added.before = node(sentinel_).before;
  added.after = sentinel_;
  node(added.before).after = block;
  node(sentinel_).before = block;
  ++free_;
}

BlockId BlockPool::take() {
  LLMPROF_ASSERT(free_ > 0);
  const BlockId block = node(sentinel_).after;
  unlink(block);
  Node& taken = node(block);
  if (taken.findable) {
    map_.erase(taken.content);
    taken.findable = false;
  }
  taken.references = 1;
  return block;
}

void BlockPool::share(BlockId block) {
  if (node(block).references++ == 0) unlink(block);
}

void BlockPool::release(BlockId block) {
  LLMPROF_ASSERT(references(block) > 0);
  if (--node(block).references == 0) append(block);
}

void BlockPool::release_all(std::vector<BlockId>& blocks) {
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) release(*block);
  blocks.clear();
}

void BlockPool::remember(BlockId block, std::uint64_t content) {
  Node& full = node(block);
  if (full.findable || !map_.insert(content, block)) return;
  full.findable = true;
  full.content = content;
}

}  // namespace llmprof::serving
