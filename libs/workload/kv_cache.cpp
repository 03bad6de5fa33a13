#include "workload/kv_cache.h"

namespace llmprof::workload {

KvCache::KvCache(const ModelConfig& config, std::int64_t batch, std::int64_t capacity)
    : batch_(batch),
      capacity_(capacity),
      kv_heads_(config.kv_heads),
      head_dim_(config.head_dim),
      values_offset_(config.layers * batch * config.kv_heads * capacity * config.head_dim),
      buffer_(2 * values_offset_) {}

}  // namespace llmprof::workload
