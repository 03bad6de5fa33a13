#pragma once
// What the operators of attention share beside their loops: axes that fit each other, smaller problems of the same
// kind, and how a context is cut into parts.

#include <initializer_list>
#include <string_view>

#include "bench/operator.h"

namespace llmprof::bench {

// Errors of axes that do not fit each other, each with the values.
Result<void> check_heads(const Problem& problem);  // heads, kv_heads
Result<void> check_pages(const Problem& problem);  // context, page
// The product of some axes, as many values as a tensor has: it must stay far from the end of 64 bits.
Result<void> check_values(const Problem& problem, std::initializer_list<std::string_view> axes);

// Of a smaller problem: at most two sequences and two heads of keys, each with as many queries as before.
Problem few_heads(const Problem& problem);
// A shorter context with as many tokens beyond a multiple of 128, or of as many whole pages.
std::int64_t short_context(std::int64_t context, std::int64_t page);

// float16 and bfloat16 on Ampere or later: what the kernels of ops/attention_*.cu and mla_decode.cu are written for.
Result<void> check_tensor_cores(const cuda::Context& context, const Problem& problem);

// How a context is cut into parts for blocks that work side by side.
struct SplitCosts {
  std::int64_t multiprocessors = 1, blocks_per_multiprocessor = 1;
  double start = 4, merge = 0.1;  // of a block and of a part, in the time that a block takes for a tile
};
// `pairs` are the blocks that one part would give, `tiles` the smallest pieces of the context.
std::int64_t choose_splits(std::int64_t pairs, std::int64_t tiles, const SplitCosts& costs);

}  // namespace llmprof::bench
