#pragma once
// Causal attention of new tokens over the cached keys and values, theirs included.

#include <cstdint>

#include "workload/buffer.h"
#include "workload/config.h"
#include "workload/thread_pool.h"

namespace llmprof::workload {

// Keys and values of all tokens so far. Per layer, sequence and head one block (capacity, D): decode streams through
// it, and prefill hands it to BLAS as a matrix.

class KvCache {
 public:
  KvCache(const ModelConfig& config, std::int64_t batch, std::int64_t capacity);

  std::int64_t batch() const { return batch_; }
  std::int64_t capacity() const { return capacity_; }
  std::int64_t length() const { return length_; }  // tokens per sequence, the same for all
  void advance(std::int64_t tokens) { length_ += tokens; }
  void clear() { length_ = 0; }

  float* keys(std::int64_t layer, std::int64_t sequence, std::int64_t kv_head) {  // (capacity, D)
    return buffer_.data() + block(layer, sequence, kv_head);
  }
  float* values(std::int64_t layer, std::int64_t sequence, std::int64_t kv_head) {  // (capacity, D)
    return buffer_.data() + block(layer, sequence, kv_head) + values_offset_;
  }

 private:
  std::int64_t block(std::int64_t layer, std::int64_t sequence, std::int64_t kv_head) const {
    return ((layer * batch_ + sequence) * kv_heads_ + kv_head) * capacity_ * head_dim_;
  }

  std::int64_t batch_, capacity_, kv_heads_, head_dim_;
  std::int64_t values_offset_;  // keys of all layers first, then the values
  std::int64_t length_ = 0;
  FloatBuffer buffer_;
};

struct NewTokens {
  std::int64_t batch;     // B
  std::int64_t tokens;    // T new tokens per sequence
  std::int64_t position;  // of the first of them
  std::int64_t rows() const { return batch * tokens; }
  std::int64_t context() const { return position + tokens; }
};

struct Queries {
  const float* data;  // (B, T, H, D), a row of all heads every row_stride floats
  std::int64_t row_stride;
};

struct Attention {
  const ModelConfig& config;
  const NewTokens& pass;
  Queries queries;
  KvCache& cache;
  std::int64_t layer;
  FloatBuffer& scores;  // scratch
  float* out;           // (B, T, H·D)
  ThreadPool& pool;
};

void attend(const Attention& attention);

}  // namespace llmprof::workload
