#pragma once
// Keys and values of all tokens so far. Per layer, sequence and head one block (capacity, D): decode streams through
// it, and prefill hands it to BLAS as a matrix.

#include <cstdint>

#include "workload/buffer.h"
#include "workload/config.h"

namespace llmprof::workload {

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

}  // namespace llmprof::workload
