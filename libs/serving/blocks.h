#pragma once
// The KV cache as an engine accounts for it: blocks of tokens with reference counts, a free list in order of last use,
// and full blocks findable by their content until they are reused. Every operation is O(1). Not thread-safe.

#include <cstdint>
#include <vector>

namespace llmprof::serving {

using BlockId = std::int32_t;
inline constexpr BlockId kNoBlock = -1;

// Content to block. Open addressing: keys are hashes already, so a slot is found within a probe or two.
class BlockMap {
 public:
  explicit BlockMap(std::int64_t most_entries);
  BlockId find(std::uint64_t key) const {
    for (std::size_t at = home(key);; at = (at + 1) & mask_) {
      if (slots_[at].block == kNoBlock) return kNoBlock;
      if (slots_[at].key == key) return slots_[at].block;
    }
  }
  bool insert(std::uint64_t key, BlockId block);  // false: the key is there already, and keeps its block
  void erase(std::uint64_t key);

 private:
  struct Slot {
    std::uint64_t key = 0;
    BlockId block = kNoBlock;
  };
  std::size_t home(std::uint64_t key) const { return static_cast<std::size_t>(key * 0x9E3779B97F4A7C15ULL >> shift_); }

  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
  int shift_ = 0;
};

class BlockPool {
 public:
  // Block 0 is vLLM's null block and is never handed out.
  explicit BlockPool(std::int64_t blocks);

  std::int64_t usable() const { return static_cast<std::int64_t>(nodes_.size()) - 2; }
  std::int64_t free() const { return free_; }
  std::int64_t used() const { return usable() - free_; }
  std::int32_t references(BlockId block) const { return nodes_[static_cast<std::size_t>(block)].references; }

  // The block that was free for longest; what it held is forgotten. Requires free() > 0.
  BlockId take();
  // Another user of a block that find() returned.
  void share(BlockId block);
  // One user less; a block without users is reused after all that are free now.
  void release(BlockId block);
  // The same for all blocks of a request, the last one first: the beginning of a prompt is worth most to others.
  void release_all(std::vector<BlockId>& blocks);

  // Makes a full block findable. Content that is findable already stays where it is.
  void remember(BlockId block, std::uint64_t content);
  BlockId find(std::uint64_t content) const { return map_.find(content); }

 private:
  // Nodes of the free list, which is circular through a sentinel behind the last block.
  struct Node {
    BlockId before = kNoBlock, after = kNoBlock;
    std::int32_t references = 0;
    bool findable = false;
    std::uint64_t content = 0;
  };
  Node& node(BlockId block) { return nodes_[static_cast<std::size_t>(block)]; }
  void unlink(BlockId block);
  void append(BlockId block);

  std::vector<Node> nodes_;
  BlockMap map_;
  std::int64_t free_ = 0;
  BlockId sentinel_ = 0;
};

}  // namespace llmprof::serving
