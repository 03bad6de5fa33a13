// Latent attention of one query per head. A block of eight warps takes 64 heads and one part of the context: 64 rows of the
// cache at a time come to shared memory once, as keys (all 576 values) and as values (the first 512). For the scores a
// warp takes 16 heads and half of the rows; for the result it takes all heads and 64 of the 512 dimensions.
// A second kernel merges the parts.

#include "bench/ops/mla_decode.cuh"

namespace llmprof {

namespace mla {

// Behind the queries and two stages of rows.
struct Shared {
  unsigned char weights[kHeads * kWeightBytes];
  float highest[2][kHeads], shrink[kHeads], sum[kHeads];
};

// One row of 1152 bytes by four threads; zeros if not valid.
__device__ inline void load_row(std::uint32_t tile, int row, const void* from, bool valid) {
  const int part = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < kRowBytes / 64; ++i) {
    copy_async(tile + tile_offset<kRowBytes>(row, i * 4 + part), static_cast<const char*>(from) + (i * 4 + part) * 16, valid);
  }
}

template <class T>
__device__ void load_tile(std::uint32_t tile, const T* rows, const Cache& cache, int first) {
  const int row = threadIdx.x / 4, token = first + row;
  load_row(tile, row, rows + cache.row(min(token, cache.context - 1)) * kWidth, token < cache.context);
}

// 16 heads x 32 tokens: scores[n] of tokens 8·n …
template <class T>
__device__ void score(float (&scores)[4][4], std::uint32_t queries, std::uint32_t tile, int head, int token, int lane) {
#pragma unroll
  for (int n = 0; n < 4; ++n) scores[n][0] = scores[n][1] = scores[n][2] = scores[n][3] = 0;
#pragma unroll 6
  for (int i = 0; i < kWidth / 16; ++i) {
    std::uint32_t a[4], b[4], c[4];
    load_matrices(a, queries + tile_offset<kRowBytes>(head + lane % 16, i * 2 + lane / 16));
    load_matrices(b, tile + tile_offset<kRowBytes>(token + lane / 16 * 8 + lane % 8, i * 2 + lane / 8 % 2));
    load_matrices(c, tile + tile_offset<kRowBytes>(token + 16 + lane / 16 * 8 + lane % 8, i * 2 + lane / 8 % 2));
    multiply_add<T>(scores[0], a[0], a[1], a[2], a[3], b[0], b[1]);
    multiply_add<T>(scores[1], a[0], a[1], a[2], a[3], b[2], b[3]);
    multiply_add<T>(scores[2], a[0], a[1], a[2], a[3], c[0], c[1]);
    multiply_add<T>(scores[3], a[0], a[1], a[2], a[3], c[2], c[3]);
  }
}

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

// out[group][n]: 16 heads x 8 dimensions.
template <class T>
__device__ void add_values(float (&out)[4][8][4], const Shared& shared, std::uint32_t tile, int warp, int lane) {
  const int row = lane / 4;
  const std::uint32_t weights = shared_address(shared.weights);
#pragma unroll
  for (int group = 0; group < 4; ++group) {
    const float top = shared.shrink[group * 16 + row], bottom = shared.shrink[group * 16 + row + 8];
    if (!__any_sync(0xffffffffu, top != 1.0f || bottom != 1.0f)) continue;
#pragma unroll
    for (int n = 0; n < 8; ++n) out[group][n][0] *= top, out[group][n][1] *= top, out[group][n][2] *= bottom, out[group][n][3] *= bottom;
  }
#pragma unroll
  for (int i = 0; i < kTokens / 16; ++i) {
    std::uint32_t a[4][4];
#pragma unroll
    for (int group = 0; group < 4; ++group) {
      load_matrices(a[group], weights + tile_offset<kWeightBytes>(group * 16 + lane % 16, i * 2 + lane / 16));
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      std::uint32_t b[4];
      load_matrices_transposed(b, tile + tile_offset<kRowBytes>(i * 16 + lane % 16, warp * 8 + n * 2 + lane / 16));
#pragma unroll
      for (int group = 0; group < 4; ++group) {
        multiply_add<T>(out[group][n * 2], a[group][0], a[group][1], a[group][2], a[group][3], b[0], b[1]);
        multiply_add<T>(out[group][n * 2 + 1], a[group][0], a[group][1], a[group][2], a[group][3], b[2], b[3]);
      }
    }
  }
}

template <class T>
__device__ void run(const T* q, const T* rows, T* out, const Task& task, float scale) {
  extern __shared__ __align__(128) unsigned char memory[];
  const std::uint32_t queries = shared_address(memory), stages = queries + kHeads * kRowBytes;
  Shared& shared = *reinterpret_cast<Shared*>(memory + (kHeads + 2 * kTokens) * kRowBytes);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, column = lane % 4;
  const int head = warp % 4 * 16, half = warp / 4;  // of the scores
  const int own = threadIdx.x / 4;
  load_row(queries, own, q + (task.first_head + min(own, task.heads_here - 1)) * kWidth, own < task.heads_here);
  load_tile(stages, rows, task.cache, task.begin * kTokens);
  commit_copies();
  float result[4][8][4] = {}, highest[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
  for (int tile = task.begin; tile < task.end; ++tile) {
    const std::uint32_t now = stages + (tile - task.begin) % 2 * (kTokens * kRowBytes);
    wait_copies<0>();
    __syncthreads();  // the tile is here, and nobody reads the other stage any more
    if (tile + 1 < task.end) {
      load_tile(stages + (tile + 1 - task.begin) % 2 * (kTokens * kRowBytes), rows, task.cache, (tile + 1) * kTokens);
      commit_copies();
    }
    float scores[4][4], shrink[2];
    score<T>(scores, queries, now, head, half * 32, lane);
    mask(scores, tile * kTokens + half * 32 + column * 2, task.cache.context);
    soften<T>(scores, shared, highest, sum, shrink, scale * kLog2E, head, half, row, column);
    if (half == 0 && column == 0) shared.shrink[head + row] = shrink[0], shared.shrink[head + row + 8] = shrink[1];
    __syncthreads();
    add_values<T>(result, shared, now, warp, lane);
  }
  finish_sums(shared, task.part, highest, sum, head, half, row, column);
#pragma unroll
  for (int group = 0; group < 4; ++group) {
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const int d = warp * 64 + n * 8 + column * 2;
      store_pair(task, shared.sum[group * 16 + row], out, group * 16 + row, d, result[group][n][0], result[group][n][1]);
      store_pair(task, shared.sum[group * 16 + row + 8], out, group * 16 + row + 8, d, result[group][n][2], result[group][n][3]);
    }
  }
}

// One block of 128 threads per head, four dimensions each.
template <class T>
__device__ void merge(const Part* parts, T* out, int heads, int splits) {
  const int sequence = blockIdx.x / heads, head = blockIdx.x % heads, chunks = (heads + kHeads - 1) / kHeads;
  const Part* mine = parts + (static_cast<std::int64_t>(sequence) * chunks + head / kHeads) * splits;
  const int at = head % kHeads, d = threadIdx.x * 4;
  float high = -INFINITY, sum = 0;
  for (int s = 0; s < splits; ++s) high = fmaxf(high, mine[s].highest[at]);
  float4 total = make_float4(0, 0, 0, 0);
#pragma unroll 4
  for (int s = 0; s < splits; ++s) {
    const float share = exp2_fast(mine[s].highest[at] - high);
    const float4 value = *reinterpret_cast<const float4*>(&mine[s].values[at][d]);
    sum += share * mine[s].sum[at];
    total.x += share * value.x;
    total.y += share * value.y;
    total.z += share * value.z;
    total.w += share * value.w;
  }
  const uint2 packed = make_uint2(pack_pair<T>(total.x / sum, total.y / sum), pack_pair<T>(total.z / sum, total.w / sum));
  *reinterpret_cast<uint2*>(out + static_cast<std::int64_t>(blockIdx.x) * kRank + d) = packed;
}

}  // namespace mla

#define LLMPROF_MLA(type, T)                                                                                             \
  __global__ void __launch_bounds__(256, 1) mla_decode_##type(const T* q, const T* rows, T* out, const int* pages,       \
                                                              mla::Part* parts, int context, int heads, int page,        \
                                                              int splits, float scale) {                                 \
    mla::run<T>(q, rows, out, mla::Task(pages, parts, context, heads, page, splits), scale);                                        \
  }                                                                                                                      \
  __global__ void __launch_bounds__(128) mla_decode_merge_##type(const mla::Part* parts, T* out, int heads, int splits) { \
    mla::merge<T>(parts, out, heads, splits);                                                                            \
  }

extern "C" {
LLMPROF_MLA(bfloat16, __nv_bfloat16)
LLMPROF_MLA(float16, __half)
}

}  // namespace llmprof
