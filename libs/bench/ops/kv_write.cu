// The keys and values of new tokens go to their places in a paged cache. Pure copying: bits, whatever they mean.

#include "bench/ops/rows.cuh"

namespace llmprof {

struct KvWrite {
  const int*
      pages;  // (sequences, context / page): which page of the cache holds these tokens; null: one after the other
  int seq, context, page;
  int words;  // of a token's keys: those of all heads

  // Where a new token's keys begin, in tokens. The new ones are the last `seq` of their context.
  __device__ std::int64_t slot(int token) const {
    const std::int64_t sequence = token / seq;
    const int position = context - seq + token % seq;
    if (pages == nullptr) return sequence * context + position;
    return static_cast<std::int64_t>(pages[sequence * (context / page) + position / page]) * page + position % page;
  }
};

// A row of threads per token.
template <class Word>
__device__ void kv_write(const Word* keys, const Word* values, Word* key_cache, Word* value_cache, const KvWrite& a,
                         int tokens) {
  const int token = static_cast<int>(row_index());
  if (token >= tokens) return;
  const std::int64_t from = static_cast<std::int64_t>(token) * a.words, to = a.slot(token) * a.words;
#pragma unroll 2
  for (int i = threadIdx.x; i < a.words; i += blockDim.x) {
    const Word key = keys[from + i], value = values[from + i];
    key_cache[to + i] = key;
    value_cache[to + i] = value;
  }
}

#define LLMPROF_KV_WRITE(bytes, Word)                                                                               \
  extern "C" __global__ void kv_write_##bytes(const Word* keys, const Word* values, Word* key_cache,                 \
                                              Word* value_cache, const int* pages, int seq, int context, int page,   \
                                              int words, int tokens) {                                               \
    kv_write(keys, values, key_cache, value_cache, {pages, seq, context, page, words}, tokens);                      \
  }
LLMPROF_KV_WRITE(16, uint4)
LLMPROF_KV_WRITE(4, unsigned)
LLMPROF_KV_WRITE(2, ushort1)

}  // namespace llmprof
