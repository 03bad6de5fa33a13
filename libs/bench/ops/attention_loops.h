#pragma once
// A query against rows of a cache: in double as a textbook has it, and in float32 with the softmax computed on the way.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "bench/operator.h"

namespace llmprof::bench {

// Rows of a cache, one after another: those of token t begin at row(t) * step. A cache of pages has a table that names
// the page of every `page` tokens.
template <class Value, class Entry>
struct CacheRows {
  const Value* keys = nullptr;
  const Value* values = nullptr;  // a latent cache holds both in one row
  std::int64_t step = 0;
  std::int64_t first = 0;        // row of token 0 of a cache without pages
  const Entry* pages = nullptr;  // of this sequence
  std::int64_t page = 0;         // tokens; 0: no pages

  std::int64_t row(std::int64_t token) const {
    return page == 0 ? first + token : static_cast<std::int64_t>(pages[token / page]) * page + token % page;
  }
  const Value* key(std::int64_t token) const { return keys + row(token) * step; }
  const Value* value(std::int64_t token) const { return values + row(token) * step; }
};

// The cache of one sequence of a problem of decode; `table` is read where there are pages.
template <class Value, class Entry>
CacheRows<Value, Entry> cache_of(const Problem& problem, std::int64_t sequence, const Value* keys, const Value* values,
                                 const Entry* table, std::int64_t step) {
  const std::int64_t context = problem.at("context"), page = problem.at("page");
  return {.keys = keys,
          .values = values,
          .step = step,
          .first = sequence * context,
          .pages = page > 0 ? table + sequence * (context / page) : nullptr,
          .page = page};
}

struct HeadSize {
  std::int64_t key = 0, value = 0;
};

inline double score_scale(std::int64_t key_values) { return 1 / std::sqrt(static_cast<double>(key_values)); }

// out = Σ softmax(scale · query·key)ᵢ · valueᵢ over the first `tokens` rows.
template <class Entry>
void attend(const double* query, const CacheRows<double, Entry>& cache, std::int64_t tokens, HeadSize size,
            double* out) {
  std::vector<double> weights(static_cast<std::size_t>(tokens));
  const double scale = score_scale(size.key);
  double highest = -std::numeric_limits<double>::infinity();
  for (std::int64_t t = 0; t < tokens; ++t) {
    double score = 0;
    for (std::int64_t d = 0; d < size.key; ++d) score += query[d] * cache.key(t)[d];
    weights[static_cast<std::size_t>(t)] = score * scale;
    highest = std::max(highest, score * scale);
  }
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - highest);
  std::fill_n(out, size.value, 0.0);
  for (std::int64_t t = 0; t < tokens; ++t) {
    const double weight = weights[static_cast<std::size_t>(t)] / sum;
    for (std::int64_t d = 0; d < size.value; ++d) out[d] += weight * cache.value(t)[d];
  }
}

// The same in one pass: what was summed is scaled down whenever a higher score comes.
template <class Entry>
void attend(const float* query, const CacheRows<float, Entry>& cache, std::int64_t tokens, HeadSize size, float* out) {
  const auto scale = static_cast<float>(score_scale(size.key));
  float highest = -std::numeric_limits<float>::infinity(), sum = 0;
  std::fill_n(out, size.value, 0.0f);
  for (std::int64_t t = 0; t < tokens; ++t) {
    const float* key = cache.key(t);
    float score = 0;
#pragma omp simd reduction(+ : score)
    for (std::int64_t d = 0; d < size.key; ++d) score += query[d] * key[d];
    score *= scale;
    if (score > highest) {
      const float shrink = std::exp(highest - score);
      for (std::int64_t i = 0; i < size.value; ++i) out[i] *= shrink;
      sum *= shrink;
      highest = score;
    }
    const float weight = std::exp(score - highest), *value = cache.value(t);
    for (std::int64_t i = 0; i < size.value; ++i) out[i] += weight * value[i];
    sum += weight;
  }
  for (std::int64_t i = 0; i < size.value; ++i) out[i] /= sum;
}

}  // namespace llmprof::bench
