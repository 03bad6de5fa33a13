#pragma once
// What the operators of attention and of its cache share beside their loops: axes that fit each other, smaller problems
// of the same kind, how a context is cut into parts, the work.

#include <cstdint>
#include <vector>

#include "bench/operator.h"

namespace llmprof::bench {

// Errors of axes that do not fit each other, each with the values.
Result<void> check_heads(const Problem& problem);  // heads, kv_heads
Result<void> check_pages(const Problem& problem);  // context, page

// Behind the other tensors, where the cache has pages: which page holds every `page` tokens of each sequence.
void add_page_table(std::vector<TensorSpec>& specs, const Problem& problem);

// Of a smaller problem: at most two sequences and two heads of keys, each with as many queries as before.
Problem few_heads(const Problem& problem);

// A shorter context with as many tokens beyond a multiple of 128, or of as many whole pages.
std::int64_t short_context(std::int64_t context, std::int64_t page);

// float16 and bfloat16 on Ampere or later: what the kernels of ops/attention_*.cu and mla_decode.cu are written for.
Result<void> check_tensor_cores(const cuda::Context& context, const Problem& problem);

// What kernels of decode count with: 32 bits for tokens and rows, pages of whole tiles of 16 tokens.
Result<void> check_decode_kernel(const cuda::Context& context, const Problem& problem);

// How a context is cut into parts for blocks that work side by side.
struct SplitCosts {
  std::int64_t multiprocessors = 1, blocks_per_multiprocessor = 1;
  double start = 4, merge = 0.1;  // of a block and of a part, in the time that a block takes for a tile
};
// `pairs` are the blocks that one part would give, `tiles` the smallest pieces of the context.
std::int64_t choose_splits(std::int64_t pairs, std::int64_t tiles, const SplitCosts& costs);

// The core of attention with grouped heads, of `tokens` new tokens over `context`.
model::KernelWork grouped_attention_work(const Problem& problem, std::int64_t tokens, std::int64_t context);
// A prefill by the kernel of attention_prefill.cu: batch sequences of seq new tokens, each with `prior` tokens before
// them in the cache.
Result<CudaCall> prepare_prefill_kernel(cuda::Context& context, const Problem& problem, std::int64_t prior);
// By cuDNN, with `queries` new tokens of each sequence over `keys`.
Result<CudaCall> prepare_cudnn_attention(cuda::Context& context, const Problem& problem, std::int64_t queries,
                                         std::int64_t keys, bool causal);

}  // namespace llmprof::bench
