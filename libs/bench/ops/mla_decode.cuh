#pragma once
// What both kernels of latent attention share: where rows lie, which of them a block takes, and what it leaves.

#include "bench/cuda/tensor_cores.cuh"
#include "bench/cuda/vector.cuh"

namespace llmprof {

namespace mla {

constexpr int kHeads = 64, kTokens = 64, kRank = 512, kWidth = 576;
constexpr int kRowBytes = kWidth * 2, kWeightBytes = kTokens * 2;

struct Part {
  float values[kHeads][kRank], highest[kHeads], sum[kHeads];
};

struct Cache {
  const int* pages;  // nullptr: in one piece
  int context, page;
  std::int64_t first_row;  // of the sequence, in one piece
  __device__ std::int64_t row(int token) const {
    return pages == nullptr ? first_row + token : static_cast<std::int64_t>(pages[token / page]) * page + token % page;
  }
};

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
__device__ inline void store_pair(const Task& task, float sum, T* out, int head, int d, float left, float right) {
  if (head >= task.heads_here) return;
  if (task.part != nullptr) {
    *reinterpret_cast<float2*>(&task.part->values[head][d]) = make_float2(left, right);
  } else {
    *reinterpret_cast<std::uint32_t*>(out + (task.first_head + head) * kRank + d) = pack_pair<T>(left / sum, right / sum);
  }
}

}  // namespace mla

}  // namespace llmprof
