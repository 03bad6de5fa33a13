// Attention of one query per head against a cache. A block of four warps takes one part of the context for the queries
// that share a head of keys; each warp takes every fourth tile of 16 tokens. Keys and values go from memory straight into
// the fragments of tensor cores, 16 bytes a load: a sum over the dimensions may be taken in any order, and so may the
// rows of the result. Scores are computed transposed (tokens x heads), so that 8 heads fill a product.
// The block that finishes last merges the parts.

#include "bench/cuda/tensor_cores.cuh"
#include "bench/cuda/vector.cuh"

namespace llmprof {

namespace decode {

constexpr int kWarps = 4, kTile = 16;

struct Cache {
  const int* pages;  // nullptr: in one piece
  int context, page;
  std::int64_t first_row;  // of the sequence, in one piece
  __device__ std::int64_t row(int tile) const {
    const int token = tile * kTile;
    return pages == nullptr ? first_row + token : static_cast<std::int64_t>(pages[token / page]) * page + token % page;
  }
};

// The highest score (times log2 e), the sum of weights, and the weighted sum of values, per head of the block.
template <int kDim, int kHeads>
struct Part {
  float values[kHeads][kDim], highest[kHeads], sum[kHeads];
};

// What the warps of a block leave for each other at the end.
template <int kDim, int kHeads>
struct alignas(16) Shared {
  float values[kWarps][kHeads][kDim + 4];  // dimensions in the order of the fragments; 4 more to spread over the banks
  float highest[kWarps][kHeads], sum[kWarps][kHeads];
  bool last;
};

// Where dimension d of a head lies in Shared::values: a lane holds dimensions 8·row … 8·row + 7 of each 64.
__device__ inline int fragment_place(int d) { return (d / 64 * 8 + d % 8) * 8 + d % 64 / 8; }

template <class T, int kDim, int kHeads>
struct Warp {
  static constexpr int kTiles = kHeads / 8, kKeyLoads = kDim / 32, kValueLoads = kDim / 64;
  uint4 query[kTiles][kKeyLoads];
  uint4 keys[kKeyLoads][2];
  float values[kTiles][kDim / 16][4];
  float highest[kTiles][2], sum[kTiles][2];

  __device__ void begin(const T* q, int heads, int row, int column) {
    for (int t = 0; t < kTiles; ++t) {
      for (int j = 0; j < kKeyLoads; ++j) {
        query[t][j] = t * 8 + row < heads ? *reinterpret_cast<const uint4*>(q + (t * 8 + row) * kDim + j * 32 + column * 8)
                                          : make_uint4(0, 0, 0, 0);
      }
      for (int i = 0; i < kDim / 16; ++i) values[t][i][0] = values[t][i][1] = values[t][i][2] = values[t][i][3] = 0;
      highest[t][0] = highest[t][1] = -INFINITY;
      sum[t][0] = sum[t][1] = 0;
    }
  }

  __device__ void load_keys(const T* k, std::int64_t cache_row, std::int64_t step, int valid, int row, int column) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const T* from = k + (cache_row + min(row + 8 * half, valid - 1)) * step + column * 8;
#pragma unroll
      for (int j = 0; j < kKeyLoads; ++j) keys[j][half] = load_once(from + j * 32);
    }
  }

  // scores[t]: tokens row and row + 8 of the tile, heads 2·column and 2·column + 1 of head tile t.
  __device__ void score(float (&scores)[kTiles][4]) const {
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      scores[t][0] = scores[t][1] = scores[t][2] = scores[t][3] = 0;
#pragma unroll
      for (int j = 0; j < kKeyLoads; ++j) {
        const uint4 &a = keys[j][0], &b = keys[j][1], &q = query[t][j];
        multiply_add<T>(scores[t], a.x, b.x, a.y, b.y, q.x, q.y);
        multiply_add<T>(scores[t], a.z, b.z, a.w, b.w, q.z, q.w);
      }
    }
  }

  // Scores become weights; what was summed before is scaled down if a higher score came.
  __device__ void soften(float (&scores)[kTiles][4], float scale) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float high = fmaxf(scores[t][i], scores[t][i + 2]);
        for (int lanes = 4; lanes < 32; lanes *= 2) high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, lanes));
        high = fmaxf(highest[t][i], high * scale);
        const float shrink = exp2_fast(highest[t][i] - high);
        highest[t][i] = high;
        scores[t][i] = exp2_fast(scores[t][i] * scale - high);
        scores[t][i + 2] = exp2_fast(scores[t][i + 2] * scale - high);
        sum[t][i] = sum[t][i] * shrink + scores[t][i] + scores[t][i + 2];
#pragma unroll
        for (int n = 0; n < kDim / 16; ++n) values[t][n][i] *= shrink, values[t][n][i + 2] *= shrink;
      }
    }
  }

  // loaded[j]: of tokens 2·column, 2·column + 1, and those + 8, dimensions 8·row … of each 64.
  __device__ void add_values(const float (&weights)[kTiles][4], const uint4 (&loaded)[kValueLoads][4]) {
    std::uint32_t w[kTiles][2];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      w[t][0] = transpose_matrix(pack_pair<T>(weights[t][0], weights[t][1]));
      w[t][1] = transpose_matrix(pack_pair<T>(weights[t][2], weights[t][3]));
    }
#pragma unroll
    for (int j = 0; j < kValueLoads; ++j) {
      const auto* a = reinterpret_cast<const std::uint32_t*>(&loaded[j][0]);
      const auto* b = reinterpret_cast<const std::uint32_t*>(&loaded[j][1]);
      const auto* c = reinterpret_cast<const std::uint32_t*>(&loaded[j][2]);
      const auto* d = reinterpret_cast<const std::uint32_t*>(&loaded[j][3]);
#pragma unroll
      for (int i = 0; i < 4; ++i) {  // two dimensions at a time: pairs of dimensions become pairs of tokens
        const std::uint32_t a0 = __byte_perm(a[i], b[i], 0x5410), a1 = __byte_perm(a[i], b[i], 0x7632);
        const std::uint32_t a2 = __byte_perm(c[i], d[i], 0x5410), a3 = __byte_perm(c[i], d[i], 0x7632);
#pragma unroll
        for (int t = 0; t < kTiles; ++t) multiply_add<T>(values[t][j * 4 + i], a0, a1, a2, a3, w[t][0], w[t][1]);
      }
    }
  }
};

template <class T, int kDim, int kHeads>
__device__ void walk(Warp<T, kDim, kHeads>& warp, const T* k, const T* v, const Cache& cache, std::int64_t step, int tile,
                     int end, float scale, int row, int column) {
  if (tile >= end) return;
  std::int64_t cache_row = cache.row(tile);
  warp.load_keys(k, cache_row, step, min(kTile, cache.context - tile * kTile), row, column);
  while (tile < end) {
    const int valid = min(kTile, cache.context - tile * kTile), next = tile + kWarps;
    const std::int64_t next_row = next < end ? cache.row(next) : 0;
    uint4 loaded[kDim / 64][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int token = column * 2 + (i & 1) + (i & 2) * 4;
      const T* from = v + (cache_row + min(token, valid - 1)) * step + row * 8;
#pragma unroll
      for (int j = 0; j < kDim / 64; ++j) loaded[j][i] = load_once(from + j * 64);
    }
    float scores[kHeads / 8][4];
    warp.score(scores);
    if (next < end) warp.load_keys(k, next_row, step, min(kTile, cache.context - next * kTile), row, column);
    if (valid < kTile) {
#pragma unroll
      for (int t = 0; t < kHeads / 8; ++t) {
        if (row >= valid) scores[t][0] = scores[t][1] = -INFINITY;
        if (row + 8 >= valid) scores[t][2] = scores[t][3] = -INFINITY;
      }
    }
    warp.soften(scores, scale);
    warp.add_values(scores, loaded);
    tile = next;
    cache_row = next_row;
  }
}

template <class T, int kDim, int kHeads>
__device__ void leave(const Warp<T, kDim, kHeads>& part, Shared<kDim, kHeads>& shared, int warp, int row, int column) {
#pragma unroll
  for (int t = 0; t < kHeads / 8; ++t) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int head = t * 8 + column * 2 + i;
      float sum = part.sum[t][i];
      for (int lanes = 4; lanes < 32; lanes *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
      if (row == 0) shared.highest[warp][head] = part.highest[t][i], shared.sum[warp][head] = sum;
#pragma unroll
      for (int n = 0; n < kDim / 16; ++n) {
        const int place = (n / 4 * 8 + n % 4 * 2) * 8 + row;
        shared.values[warp][head][place] = part.values[t][n][i];
        shared.values[warp][head][place + 8] = part.values[t][n][i + 2];
      }
    }
  }
}

// What a head's warps have in common.
struct Merged {
  float share[kWarps], highest = -INFINITY, sum = 0;
  template <int kDim, int kHeads>
  __device__ Merged(const Shared<kDim, kHeads>& shared, int head) {
#pragma unroll
    for (int w = 0; w < kWarps; ++w) highest = fmaxf(highest, shared.highest[w][head]);
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      share[w] = exp2_fast(shared.highest[w][head] - highest);  // 0 for a warp that had no tile
      sum += share[w] * shared.sum[w][head];
    }
  }
};

// out = Σ share · values / Σ share · sum, over the parts of one group of heads. A warp takes a head. Other blocks wrote
// the parts: they are read past the first-level cache.
template <class T, int kDim, int kHeads>
__device__ void merge_parts(const Part<kDim, kHeads>* parts, int splits, int heads, T* out) {
  const int lane = threadIdx.x % 32;
  for (int head = threadIdx.x / 32; head < heads; head += kWarps) {
    float high = -INFINITY, sum = 0;
    for (int s = lane; s < splits; s += 32) high = fmaxf(high, __ldcg(&parts[s].highest[head]));
    high = warp_max(high);
    for (int s = lane; s < splits; s += 32) sum += __ldcg(&parts[s].sum[head]) * exp2_fast(__ldcg(&parts[s].highest[head]) - high);
    sum = warp_sum(sum);
    for (int d = lane * 2; d < kDim; d += 64) {
      float x = 0, y = 0;
#pragma unroll 8
      for (int s = 0; s < splits; ++s) {
        const float share = exp2_fast(__ldcg(&parts[s].highest[head]) - high);
        const float2 value = __ldcg(reinterpret_cast<const float2*>(&parts[s].values[head][d]));
        x += share * value.x;
        y += share * value.y;
      }
      *reinterpret_cast<std::uint32_t*>(out + head * kDim + d) = pack_pair<T>(x / sum, y / sum);
    }
  }
}

// Whether this block is the last of `splits`; the counter is zero again afterwards.
__device__ inline bool finish_last(unsigned* counter, int splits, bool& last) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(counter, 1) == static_cast<unsigned>(splits - 1);
    if (last) *counter = 0;
  }
  __syncthreads();
  __threadfence();
  return last;
}

template <class T, int kDim, int kHeads>
__device__ void run(const T* q, const T* k, const T* v, T* out, const int* pages, void* parts, unsigned* counters,
                    int context, int heads, int kv_heads, int page, int splits, float scale) {
  __shared__ Shared<kDim, kHeads> shared;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, column = lane % 4;
  const int group = heads / kv_heads, chunks = (group + kHeads - 1) / kHeads;
  // Neighbours read the same tokens: heads vary before parts.
  const int chunk = blockIdx.x % chunks, kv_head = blockIdx.x / chunks % kv_heads;
  const int split = blockIdx.x / chunks / kv_heads % splits, sequence = blockIdx.x / chunks / kv_heads / splits;
  const int pair = (sequence * kv_heads + kv_head) * chunks + chunk;
  const int heads_here = min(kHeads, group - chunk * kHeads);
  const std::int64_t first_head = static_cast<std::int64_t>(sequence) * heads + kv_head * group + chunk * kHeads;

  const int tiles = (context + kTile - 1) / kTile;
  const int begin = static_cast<int>(static_cast<std::int64_t>(tiles) * split / splits);
  const int end = static_cast<int>(static_cast<std::int64_t>(tiles) * (split + 1) / splits);
  const Cache cache{pages == nullptr ? nullptr : pages + static_cast<std::int64_t>(sequence) * (context / page), context, page,
                    static_cast<std::int64_t>(sequence) * context};
  Warp<T, kDim, kHeads> part;
  part.begin(q + first_head * kDim, heads_here, row, column);
  walk(part, k + kv_head * kDim, v + kv_head * kDim, cache, static_cast<std::int64_t>(kv_heads) * kDim, begin + warp, end,
       scale * kLog2E, row, column);
  leave(part, shared, warp, row, column);
  __syncthreads();

  auto* mine = static_cast<Part<kDim, kHeads>*>(parts) + static_cast<std::int64_t>(pair) * splits + split;
  for (int i = threadIdx.x; i < heads_here * kDim; i += 32 * kWarps) {
    const int head = i / kDim, d = i % kDim;
    const Merged merged(shared, head);
    float value = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) value += merged.share[w] * shared.values[w][head][fragment_place(d)];
    if (splits == 1) {
      out[first_head * kDim + i] = from_float<T>(value / merged.sum);
    } else {
      mine->values[head][d] = value;
      if (d == 0) mine->highest[head] = merged.highest, mine->sum[head] = merged.sum;
    }
  }
  if (splits == 1) return;
  if (finish_last(counters + pair, splits, shared.last)) {
    merge_parts<T, kDim, kHeads>(mine - split, splits, heads_here, out + first_head * kDim);
  }
}

}  // namespace decode

// Blocks that must fit a multiprocessor: as many as keep enough loads on their way.
#define LLMPROF_DECODE(dim, heads, blocks, type, T)                                                                     \
  __global__ void __launch_bounds__(128, blocks) attention_decode_##dim##_##heads##_##type(                             \
      const T* q, const T* k, const T* v, T* out, const int* pages, void* parts, unsigned* counters, int context,       \
      int all_heads, int kv_heads, int page, int splits, float scale) {                                                 \
    decode::run<T, dim, heads>(q, k, v, out, pages, parts, counters, context, all_heads, kv_heads, page, splits, scale); \
  }

extern "C" {
LLMPROF_DECODE(64, 8, 4, bfloat16, __nv_bfloat16)
LLMPROF_DECODE(64, 16, 3, bfloat16, __nv_bfloat16)
LLMPROF_DECODE(128, 8, 3, bfloat16, __nv_bfloat16)
LLMPROF_DECODE(128, 16, 2, bfloat16, __nv_bfloat16)
LLMPROF_DECODE(256, 8, 2, bfloat16, __nv_bfloat16)
LLMPROF_DECODE(64, 8, 4, float16, __half)
LLMPROF_DECODE(64, 16, 3, float16, __half)
LLMPROF_DECODE(128, 8, 3, float16, __half)
LLMPROF_DECODE(128, 16, 2, float16, __half)
LLMPROF_DECODE(256, 8, 2, float16, __half)
}

}  // namespace llmprof
