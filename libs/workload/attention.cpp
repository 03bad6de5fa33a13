#include "workload/attention.h"

#include <cblas.h>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "workload/kernels.h"

namespace llmprof::workload {

namespace {

std::int64_t kv_head(const Attention& a, std::int64_t head) { return head / (a.config.heads / a.config.kv_heads); }
float scale(const Attention& a) { return 1.0F / std::sqrt(static_cast<float>(a.config.head_dim)); }
std::int64_t out_stride(const Attention& a) { return a.config.heads * a.config.head_dim; }

// Sequences with one new token: every (sequence, head) is one walk through its blocks. No BLAS: a product with one row
// is all overhead at this size.
void decode(const Attention& a) {
  std::vector<const NewTokens*> one;
  std::int64_t longest = 0;
  for (const NewTokens& sequence : a.sequences) {
    if (sequence.tokens != 1) continue;
    one.push_back(&sequence);
    longest = std::max(longest, sequence.context());
  }
  if (one.empty()) return;
  const std::int64_t dim = a.config.head_dim;
  const std::int64_t items = std::ssize(one) * a.config.heads;
  a.scores.reserve(items * longest);
  // 2^17 key values: some 20 us, worth waking a thread for
  const std::int64_t min_heads = std::max<std::int64_t>(1, (1 << 17) / (longest * dim));
  a.pool.parallel_for(items, min_heads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t item = begin; item < end; ++item) {
      const NewTokens& sequence = *one[static_cast<std::size_t>(item / a.config.heads)];
      const std::int64_t head = item % a.config.heads;
      const HeadQuery query{.query = a.queries.data + sequence.row * a.queries.row_stride + head * dim,
                            .keys = a.cache.keys(a.layer, 0, kv_head(a, head)),
                            .values = a.cache.values(a.layer, 0, kv_head(a, head)),
                            .context = sequence.context(),
                            .head_dim = dim,
                            .scale = scale(a),
                            .blocks = sequence.blocks,
                            .block_tokens = a.cache.block_tokens(),
                            .block_stride = a.cache.block_stride()};
      kernels().attend(query, a.scores.data() + item * longest, a.out + sequence.row * out_stride(a) + head * dim);
    }
  });
}

// Keys and values of a sequence, each head's in one piece for BLAS.
struct HeadMatrices {
  const float *keys, *values;  // (G, …, D)
  std::int64_t head_stride;
};

// Where they are, if that is one block; else copied: little beside the products with them.
HeadMatrices matrices(const Attention& a, const NewTokens& sequence) {
  const std::int64_t context = sequence.context(), dim = a.config.head_dim, step = a.cache.block_tokens();
  if (context <= step) {
    const BlockId block = sequence.blocks[0];
    return {a.cache.keys(a.layer, block, 0), a.cache.values(a.layer, block, 0), step * dim};
  }
  const std::int64_t of_head = context * dim, count = a.config.kv_heads * of_head;
  float* const to = a.gathered.reserve(2 * count);
  const std::int64_t min_heads = std::max<std::int64_t>(1, (1 << 16) / of_head);
  a.pool.parallel_for(a.config.kv_heads, min_heads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t head = begin; head < end; ++head) {
      for (std::int64_t token = 0; token < context; token += step) {
        const BlockId block = sequence.blocks[token / step];
        const std::int64_t n = std::min(step, context - token) * dim;
        std::copy_n(a.cache.keys(a.layer, block, head), n, to + head * of_head + token * dim);
        std::copy_n(a.cache.values(a.layer, block, head), n, to + count + head * of_head + token * dim);
      }
    }
  });
  return {to, to + count, of_head};
}

struct Sizes {
  blasint tokens, context, dim;
};
Sizes sizes(const Attention& a, const NewTokens& sequence) {
  return {static_cast<blasint>(sequence.tokens), static_cast<blasint>(sequence.context()),
          static_cast<blasint>(a.config.head_dim)};
}

// scores (H, T, context) = Q Kᵀ of one sequence, a full product per head: half of it is masked afterwards.
void multiply_keys(const Attention& a, const NewTokens& sequence, const HeadMatrices& cached) {
  const auto [tokens, context, dim] = sizes(a, sequence);
  const float* const q = a.queries.data + sequence.row * a.queries.row_stride;  // (T, H, D)
  for (std::int64_t head = 0; head < a.config.heads; ++head) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, tokens, context, dim, 1.0F, q + head * dim,
                static_cast<blasint>(a.queries.row_stride), cached.keys + kv_head(a, head) * cached.head_stride, dim,
                0.0F, a.scores.data() + head * tokens * std::int64_t{context}, context);
  }
}

// Each row: softmax over what its token may see, zero for what it may not.
void mask_and_normalise(const Attention& a, const NewTokens& sequence) {
  const std::int64_t context = sequence.context();
  const std::int64_t min_rows = std::max<std::int64_t>(1, (1 << 14) / context);
  a.pool.parallel_for(a.config.heads * sequence.tokens, min_rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* const score = a.scores.data() + row * context;
      const std::int64_t visible = sequence.position + row % sequence.tokens + 1;
      kernels().softmax(score, scale(a), visible);
      std::fill(score + visible, score + context, 0.0F);
    }
  });
}

// out (T, H, D) = scores · V of one sequence.
void multiply_values(const Attention& a, const NewTokens& sequence, const HeadMatrices& cached) {
  const auto [tokens, context, dim] = sizes(a, sequence);
  float* const out = a.out + sequence.row * out_stride(a);
  for (std::int64_t head = 0; head < a.config.heads; ++head) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, tokens, dim, context, 1.0F,
                a.scores.data() + head * tokens * std::int64_t{context}, context,
                cached.values + kv_head(a, head) * cached.head_stride, dim, 0.0F, out + head * dim,
                static_cast<blasint>(out_stride(a)));
  }
}

}  // namespace

void attend(const Attention& a) {
  decode(a);
  for (const NewTokens& sequence : a.sequences) {
    if (sequence.tokens == 1) continue;
    a.scores.reserve(a.config.heads * sequence.tokens * sequence.context());
    const HeadMatrices cached = matrices(a, sequence);
    multiply_keys(a, sequence, cached);
    mask_and_normalise(a, sequence);
    multiply_values(a, sequence, cached);
  }
}

KvBlocks::KvBlocks(const ModelConfig& config, std::int64_t blocks, std::int64_t block_tokens)
    : blocks_(blocks),
      block_tokens_(block_tokens),
      kv_heads_(config.kv_heads),
      head_dim_(config.head_dim),
      values_offset_(config.layers * blocks * config.kv_heads * block_tokens * config.head_dim),
      buffer_(2 * values_offset_) {}

KvCache::KvCache(const ModelConfig& config, std::int64_t batch, std::int64_t capacity)
    : KvBlocks(config, batch, capacity), numbers_(static_cast<std::size_t>(batch)) {
  std::iota(numbers_.begin(), numbers_.end(), 0);
}

}  // namespace llmprof::workload
