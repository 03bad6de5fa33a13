#pragma once
// What both kernels of latent attention share: where rows lie, what a part leaves, and how scores become weights.

#include "bench/cuda/attention.cuh"
#include "bench/cuda/vector.cuh"

namespace llmprof {

namespace mla {

constexpr int kHeads = 64, kTokens = 64, kRank = 512, kWidth = 576;
constexpr int kRowBytes = kWidth * 2, kWeightBytes = kTokens * 2;

struct Part {
  float values[kHeads][kRank], highest[kHeads], sum[kHeads];
};

// Behind the queries and two stages of rows.
struct Shared {
  unsigned char weights[kHeads * kWeightBytes];
  float highest[2][kHeads], shrink[kHeads], sum[kHeads];
};

struct Cache {
  const int* pages;  // nullptr: in one piece
  int context, page;
  std::int64_t first_row;  // of the sequence, in one piece
  __device__ std::int64_t row(int token) const {
    return pages == nullptr ? first_row + token : static_cast<std::int64_t>(pages[token / page]) * page + token % page;
  }
};

// Tokens behind the context are not seen. `first`: the token of scores[0][0].
__device__ inline void mask(float (&scores)[4][4], int first, int context) {
  if (first + 32 < context) return;
#pragma unroll
  for (int n = 0; n < 4; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (first + n * 8 + i % 2 >= context) scores[n][i] = -INFINITY;
    }
  }
}

// Scores of 16 heads and 32 tokens become weights in shared memory, to be read after the next barrier. The highest score
// of the other 32 tokens comes through it, too. shrink: what sums of before are worth now.
template <class T>
__device__ void soften(float (&scores)[4][4], Shared& shared, float (&highest)[2], float (&sum)[2], float (&shrink)[2],
                       float scale, int head, int half, int row, int column) {
  float high[2] = {-INFINITY, -INFINITY};
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    high[0] = fmaxf(high[0], fmaxf(scores[n][0], scores[n][1]));
    high[1] = fmaxf(high[1], fmaxf(scores[n][2], scores[n][3]));
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    high[i] = fmaxf(high[i], __shfl_xor_sync(0xffffffffu, high[i], 1));
    high[i] = fmaxf(high[i], __shfl_xor_sync(0xffffffffu, high[i], 2));
    if (column == 0) shared.highest[half][head + row + i * 8] = high[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int at = head + row + i * 8;
    high[i] = fmaxf(highest[i], fmaxf(high[i], shared.highest[1 - half][at]) * scale);
    shrink[i] = exp2_fast(highest[i] - high[i]);
    highest[i] = high[i];
    sum[i] *= shrink[i];
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const float left = exp2_fast(scores[n][i * 2] * scale - high[i]), right = exp2_fast(scores[n][i * 2 + 1] * scale - high[i]);
      sum[i] += left + right;
      const std::uint32_t offset = tile_offset<kWeightBytes>(at, half * 4 + n) + column * 4;
      *reinterpret_cast<std::uint32_t*>(shared.weights + offset) = pack_pair<T>(left, right);
    }
  }
}

// The sums of both halves of the tokens, in shared.sum, and in the part that this block leaves.
__device__ inline void finish_sums(Shared& shared, Part* part, const float (&highest)[2], float (&sum)[2], int head, int half,
                                   int row, int column) {
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 1);
    sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 2);
    if (column == 0) shared.highest[half][head + row + i * 8] = sum[i];
  }
  __syncthreads();
  if (half == 0 && column == 0) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int at = head + row + i * 8;
      shared.sum[at] = shared.highest[0][at] + shared.highest[1][at];
      if (part != nullptr) part->sum[at] = shared.sum[at], part->highest[at] = highest[i];
    }
  }
  __syncthreads();
}

// Which heads of which sequence, and which tiles of its context.
struct Task {
  int heads_here, begin, end;
  std::int64_t first_head;  // of all sequences
  Cache cache;
  Part* part;  // nullptr: the whole context
  __device__ Task(const int* pages, Part* parts, int context, int heads, int page, int splits) {
    // Neighbours read the same rows.
    const int chunks = (heads + kHeads - 1) / kHeads, chunk = blockIdx.x % chunks;
    const int split = blockIdx.x / chunks % splits, sequence = blockIdx.x / chunks / splits;
    const std::int64_t tiles = (context + kTokens - 1) / kTokens;
    heads_here = min(kHeads, heads - chunk * kHeads);
    begin = static_cast<int>(tiles * split / splits);
    end = static_cast<int>(tiles * (split + 1) / splits);
    first_head = static_cast<std::int64_t>(sequence) * heads + chunk * kHeads;
    cache = {pages == nullptr ? nullptr : pages + static_cast<std::int64_t>(sequence) * (context / page), context, page,
             static_cast<std::int64_t>(sequence) * context};
    part = splits == 1 ? nullptr : parts + (static_cast<std::int64_t>(sequence) * chunks + chunk) * splits + split;
  }
};

// Two values of a head, to the part or, divided by the head's sum, to the result.
template <class T>
__device__ inline void store_pair(const Task& task, const Shared& shared, T* out, int head, int d, float left, float right) {
  if (head >= task.heads_here) return;
  if (task.part != nullptr) {
    *reinterpret_cast<float2*>(&task.part->values[head][d]) = make_float2(left, right);
  } else {
    const float sum = shared.sum[head];
    *reinterpret_cast<std::uint32_t*>(out + (task.first_head + head) * kRank + d) = pack_pair<T>(left / sum, right / sum);
  }
}

}  // namespace mla

}  // namespace llmprof
