#include "workload/attention.h"

#include <cblas.h>
#include <algorithm>
#include <array>
#include <cmath>

#include "workload/kernels.h"

namespace llmprof::workload {

namespace {

std::int64_t kv_head(const Attention& a, std::int64_t head) { return head / (a.config.heads / a.config.kv_heads); }
float scale(const Attention& a) { return 1.0F / std::sqrt(static_cast<float>(a.config.head_dim)); }
std::int64_t out_stride(const Attention& a) { return a.config.heads * a.config.head_dim; }

// One new token per sequence: every (sequence, head) is one walk through its block of the cache. No BLAS: a product
// with one row is all overhead at this size.
void decode(const Attention& a) {
  const std::int64_t context = a.pass.context();
  const std::int64_t dim = a.config.head_dim;
  // 2^17 key values: some 20 us, worth waking a thread for
  const std::int64_t min_heads = std::max<std::int64_t>(1, (1 << 17) / (context * dim));
  a.pool.parallel_for(a.pass.batch * a.config.heads, min_heads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t sequence = item / a.config.heads;
      const std::int64_t head = item % a.config.heads;
      const HeadQuery query{.query = a.queries.data + sequence * a.queries.row_stride + head * dim,
                            .keys = a.cache.keys(a.layer, sequence, kv_head(a, head)),
                            .values = a.cache.values(a.layer, sequence, kv_head(a, head)),
                            .context = context,
                            .head_dim = dim,
                            .scale = scale(a)};
      kernels().attend(query, a.scores.data() + item * context, a.out + sequence * out_stride(a) + head * dim);
    }
  });
}

// scores (H, T, context) = Q Kᵀ of one sequence, a full product per head: half of it is masked afterwards.
void multiply_keys(const Attention& a, std::int64_t sequence) {
  const auto [tokens, context, dim] =
      std::array{static_cast<blasint>(a.pass.tokens), static_cast<blasint>(a.pass.context()),
                 static_cast<blasint>(a.config.head_dim)};
  const float* const q = a.queries.data + sequence * a.pass.tokens * a.queries.row_stride;  // (T, H, D)
  for (std::int64_t head = 0; head < a.config.heads; ++head) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, tokens, context, dim, 1.0F, q + head * dim,
                static_cast<blasint>(a.queries.row_stride), a.cache.keys(a.layer, sequence, kv_head(a, head)), dim,
                0.0F, a.scores.data() + head * tokens * std::int64_t{context}, context);
  }
}

// Each row: softmax over what its token may see, zero for what it may not.
void mask_and_normalise(const Attention& a) {
  const std::int64_t context = a.pass.context();
  const std::int64_t min_rows = std::max<std::int64_t>(1, (1 << 14) / context);
  a.pool.parallel_for(a.config.heads * a.pass.tokens, min_rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* const score = a.scores.data() + row * context;
      const std::int64_t visible = a.pass.position + row % a.pass.tokens + 1;
      kernels().softmax(score, scale(a), visible);
      std::fill(score + visible, score + context, 0.0F);
    }
  });
}

// out (T, H, D) = scores · V of one sequence.
void multiply_values(const Attention& a, std::int64_t sequence) {
  const auto [tokens, context, dim] =
      std::array{static_cast<blasint>(a.pass.tokens), static_cast<blasint>(a.pass.context()),
                 static_cast<blasint>(a.config.head_dim)};
  float* const out = a.out + sequence * a.pass.tokens * out_stride(a);
  for (std::int64_t head = 0; head < a.config.heads; ++head) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, tokens, dim, context, 1.0F,
                a.scores.data() + head * tokens * std::int64_t{context}, context,
                a.cache.values(a.layer, sequence, kv_head(a, head)), dim, 0.0F, out + head * dim,
                static_cast<blasint>(out_stride(a)));
  }
}

}  // namespace

void attend(const Attention& a) {
  const std::int64_t sequences_at_once = a.pass.tokens == 1 ? a.pass.batch : 1;
  a.scores.reserve(sequences_at_once * a.config.heads * a.pass.tokens * a.pass.context());
  if (a.pass.tokens == 1) return decode(a);
  for (std::int64_t sequence = 0; sequence < a.pass.batch; ++sequence) {
    multiply_keys(a, sequence);
    mask_and_normalise(a);
    multiply_values(a, sequence);
  }
}

KvCache::KvCache(const ModelConfig& config, std::int64_t batch, std::int64_t capacity)
    : batch_(batch),
      capacity_(capacity),
      kv_heads_(config.kv_heads),
      head_dim_(config.head_dim),
      values_offset_(config.layers * batch * config.kv_heads * capacity * config.head_dim),
      buffer_(2 * values_offset_) {}

}  // namespace llmprof::workload
