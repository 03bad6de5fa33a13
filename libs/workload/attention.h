#pragma once
// Causal attention of new tokens over the cached keys and values, theirs included.

#include <cstdint>

#include "workload/buffer.h"
#include "workload/config.h"
#include "workload/kv_cache.h"
#include "workload/thread_pool.h"

namespace llmprof::workload {

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
