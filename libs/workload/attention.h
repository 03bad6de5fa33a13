#pragma once
// Causal attention of new tokens over the cached keys and values, theirs included. The cache is made of blocks: a
// sequence has one block for all its tokens (infer), or many small ones in any order (serve).

#include <cstdint>
#include <span>
#include <vector>

#include "serving/blocks.h"
#include "workload/buffer.h"
#include "workload/config.h"
#include "workload/thread_pool.h"

namespace llmprof::workload {

using serving::BlockId;

// Keys and values in blocks of tokens. Per layer, block and head one matrix (block_tokens, D): decode streams through
// it, and prefill hands it to BLAS.
class KvBlocks {
 public:
  KvBlocks(const ModelConfig& config, std::int64_t blocks, std::int64_t block_tokens);

  std::int64_t blocks() const { return blocks_; }
  std::int64_t block_tokens() const { return block_tokens_; }
  std::int64_t block_stride() const { return kv_heads_ * block_tokens_ * head_dim_; }  // floats to the next block

  float* keys(std::int64_t layer, std::int64_t block, std::int64_t kv_head) {  // (block_tokens, D)
    return buffer_.data() + place(layer, block, kv_head);
  }
  float* values(std::int64_t layer, std::int64_t block, std::int64_t kv_head) {  // (block_tokens, D)
    return buffer_.data() + place(layer, block, kv_head) + values_offset_;
  }

 private:
  std::int64_t place(std::int64_t layer, std::int64_t block, std::int64_t kv_head) const {
    return ((layer * blocks_ + block) * kv_heads_ + kv_head) * block_tokens_ * head_dim_;
  }

  std::int64_t blocks_, block_tokens_, kv_heads_, head_dim_;
  std::int64_t values_offset_;  // keys of all layers first, then the values
  FloatBuffer buffer_;
};

// Sequences that grow together, a block each.
class KvCache : public KvBlocks {
 public:
  KvCache(const ModelConfig& config, std::int64_t batch, std::int64_t capacity);

  std::int64_t batch() const { return blocks(); }
  std::int64_t capacity() const { return block_tokens(); }
  std::int64_t length() const { return length_; }  // tokens per sequence, the same for all
  void advance(std::int64_t tokens) { length_ += tokens; }
  void clear() { length_ = 0; }
  const BlockId* block(std::int64_t sequence) const { return &numbers_[static_cast<std::size_t>(sequence)]; }

 private:
  std::int64_t length_ = 0;
  std::vector<BlockId> numbers_;  // 0, 1, …
};

// A sequence's part of a pass: consecutive rows.
struct NewTokens {
  std::int64_t row;       // of the first new token
  std::int64_t tokens;    // new ones
  std::int64_t position;  // of the first of them
  const BlockId* blocks;  // of its tokens, new ones included
  bool sampled = true;    // wants the logits of its last token
  std::int64_t context() const { return position + tokens; }
};

struct Queries {
  const float* data;  // (rows, H, D), a row of all heads every row_stride floats
  std::int64_t row_stride;
};

struct Attention {
  const ModelConfig& config;
  std::span<const NewTokens> sequences;
  Queries queries;
  KvBlocks& cache;
  std::int64_t layer;
  FloatBuffer& scores;    // scratch
  FloatBuffer& gathered;  // scratch
  float* out;             // (rows, H·D)
  ThreadPool& pool;
};

void attend(const Attention& attention);

}  // namespace llmprof::workload
