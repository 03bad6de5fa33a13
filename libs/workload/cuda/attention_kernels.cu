// Causal attention over the cache (B, G, capacity, D). Heads of up to 128 values, a multiple of 8. inputs[0] is the
// position of the first new token.

#include "workload/cuda/kernel.cuh"

namespace {

constexpr int kMostDim = 128;
constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kLanes;
constexpr int kDimsOfLane = kMostDim / kLanes;  // a lane owns the dimensions lane, lane + 32, …

// ---- prefill: a block takes 32 queries of a head, 8 in each warp, and walks through the keys, 32 at a time ------------
constexpr int kTile = 32;
constexpr int kQueries = kTile / kWarps;  // of a warp

struct Tiles {
  float* queries;        // (32, D), scaled
  float* probabilities;  // (32, 32)
  float* values;         // (32, D)
  float* keys;           // (32, D + 1): lanes read a column each, from 32 banks
};

// Rows of D to shared memory; those from `rows` on become 0.
template <class T>
__device__ void load_tile(const T* from, Size stride, Size rows, int dim, float scale, float* to, int to_stride) {
  for (int i = threadIdx.x; i < kTile * dim; i += kThreads) {
    const int row = i / dim, column = i % dim;
    to[row * to_stride + column] = row < rows ? to_float(from[row * stride + column]) * scale : 0.0F;
  }
}

struct Running {  // softmax of one query so far
  float largest = -INFINITY, sum = 0;
  float mixed[kDimsOfLane] = {};
};

__device__ inline void score_tile(const Tiles& tiles, int warp, int lane, int dim, float* scores) {
  const float* const key = tiles.keys + lane * (dim + 1);
  for (int d = 0; d < dim; d += 4) {
    const float k0 = key[d], k1 = key[d + 1], k2 = key[d + 2], k3 = key[d + 3];
    LLMPROF_UNROLL
    for (int j = 0; j < kQueries; ++j) {
      const float4 q = *reinterpret_cast<const float4*>(tiles.queries + (warp * kQueries + j) * dim + d);
      scores[j] += q.x * k0 + q.y * k1 + q.z * k2 + q.w * k3;
    }
  }
}

__device__ inline void mix_tile(const Tiles& tiles, int warp, int lane, int dim, Running* running) {
  for (int key = 0; key < kTile; key += 4) {
    float4 p[kQueries];
    LLMPROF_UNROLL
    for (int j = 0; j < kQueries; ++j) {
      p[j] = *reinterpret_cast<const float4*>(tiles.probabilities + (warp * kQueries + j) * kTile + key);
    }
    LLMPROF_UNROLL
    for (int i = 0; i < kDimsOfLane; ++i) {
      const int d = lane + i * kLanes;
      if (d >= dim) break;
      const float* const value = tiles.values + key * dim + d;
      const float v0 = value[0], v1 = value[dim], v2 = value[2 * dim], v3 = value[3 * dim];
      LLMPROF_UNROLL
      for (int j = 0; j < kQueries; ++j) {
        running[j].mixed[i] += p[j].x * v0 + p[j].y * v1 + p[j].z * v2 + p[j].w * v3;
      }
    }
  }
}

template <class T>
__device__ void attention_prefill(const T* q, Size q_stride, const T* keys, const T* values,
                                  const std::int32_t* inputs, Size tokens, Size kv_heads, int dim, Size capacity,
                                  float scale, T* out) {
  LLMPROF_DYNAMIC_SHARED(shared);
  const Tiles tiles{shared, shared + kTile * dim, shared + kTile * (dim + kTile), shared + kTile * (2 * dim + kTile)};
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  const Size head = blockIdx.y, heads = gridDim.y, sequence = blockIdx.z;
  const Size first = static_cast<Size>(blockIdx.x) * kTile, position = inputs[0];
  const Size cached = (sequence * kv_heads + head / (heads / kv_heads)) * capacity * dim;
  load_tile(q + (sequence * tokens + first) * q_stride + head * dim, q_stride, tokens - first, dim, scale,
            tiles.queries, dim);
  const Size last = position + (first + kTile < tokens ? first + kTile : tokens);  // what the last query sees ends here
  Running running[kQueries];
  for (Size begin = 0; begin < last; begin += kTile) {
    __syncthreads();
    load_tile(keys + cached + begin * dim, dim, last - begin, dim, 1.0F, tiles.keys, dim + 1);
    load_tile(values + cached + begin * dim, dim, last - begin, dim, 1.0F, tiles.values, dim);
    __syncthreads();
    float scores[kQueries] = {};
    score_tile(tiles, warp, lane, dim, scores);
    LLMPROF_UNROLL
    for (int j = 0; j < kQueries; ++j) {
      Running& r = running[j];
      const bool seen = begin + lane <= position + first + warp * kQueries + j;
      const float larger = fmaxf(r.largest, warp_max(seen ? scores[j] : -INFINITY));
      const float p = seen ? expf(scores[j] - larger) : 0.0F;
      const float shrink = expf(r.largest - larger);  // the first key is always seen: `larger` is finite
      r.sum = r.sum * shrink + warp_sum(p);
      r.largest = larger;
      LLMPROF_UNROLL
      for (int i = 0; i < kDimsOfLane; ++i) r.mixed[i] *= shrink;
      tiles.probabilities[(warp * kQueries + j) * kTile + lane] = p;
    }
    __syncwarp();
    mix_tile(tiles, warp, lane, dim, running);
  }
  LLMPROF_UNROLL
  for (int j = 0; j < kQueries; ++j) {
    const Size token = first + warp * kQueries + j;
    LLMPROF_UNROLL
    for (int i = 0; i < kDimsOfLane; ++i) {
      const int d = lane + i * kLanes;
      if (token < tokens && d < dim) {
        store(out + ((sequence * tokens + token) * heads + head) * dim + d, running[j].mixed[i] / running[j].sum);
      }
    }
  }
}

// ---- decode: a block takes 128 keys of a head, one per thread; attention_join adds the blocks of a head up ------------
// partial (B, H, blocks, D + 2): largest score, sum, unnormalised output.

constexpr int kAtOnce = 8;

template <class T>
__device__ void attention_decode(const T* q, Size q_stride, const T* keys, const T* values, const std::int32_t* inputs,
                                 Size kv_heads, int dim, Size capacity, float scale, float* partial) {
  __shared__ float query[kMostDim], warp_mixed[kWarps][kMostDim], warp_largest[kWarps], warp_sums[kWarps];
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes, thread = threadIdx.x;
  const Size head = blockIdx.y, heads = gridDim.y, sequence = blockIdx.z;
  const Size context = inputs[0] + 1, begin = static_cast<Size>(blockIdx.x) * kThreads;
  if (begin >= context) return;  // the grid covers the whole cache, so that one graph serves every length
  const Size cached = (sequence * kv_heads + head / (heads / kv_heads)) * capacity * dim;
  if (thread < dim) query[thread] = to_float(q[sequence * q_stride + head * dim + thread]) * scale;
  __syncthreads();
  const Size mine = begin + thread;
  float score = -INFINITY;
  if (mine < context) {
    score = 0;
    for (int d = 0; d < dim; d += 8) {
      float key[8];
      load8(keys + cached + mine * dim + d, key);
      for (int i = 0; i < 8; ++i) score += query[d + i] * key[i];
    }
  }
  const float largest = warp_max(score);
  const float p = mine < context ? expf(score - largest) : 0.0F;
  const float sum = warp_sum(p);
  float mixed[kDimsOfLane] = {};
  const Size first = begin + warp * kLanes;
  const int count = static_cast<int>(first >= context ? 0 : context - first < kLanes ? context - first : kLanes);
  for (int from = 0; from < count; from += kAtOnce) {  // so many loads are under way together
    LLMPROF_UNROLL
    for (int j = from; j < from + kAtOnce; ++j) {
      const float share = __shfl_sync(kAllLanes, p, j);  // 0 from `count` on
      const Size token = first + (j < count ? j : count - 1);
      LLMPROF_UNROLL
      for (int i = 0; i < kDimsOfLane; ++i) {
        const int d = lane + i * kLanes;
        if (d < dim) mixed[i] += share * to_float(values[cached + token * dim + d]);
      }
    }
  }
  for (int i = 0; i < kDimsOfLane; ++i) warp_mixed[warp][lane + i * kLanes] = mixed[i];
  if (lane == 0) warp_largest[warp] = largest, warp_sums[warp] = sum;
  __syncthreads();
  float* const to = partial + ((sequence * heads + head) * gridDim.x + blockIdx.x) * (dim + 2);
  const float overall = fmaxf(fmaxf(warp_largest[0], warp_largest[1]), fmaxf(warp_largest[2], warp_largest[3]));
  float total = 0, total_sum = 0;
  for (int w = 0; w < kWarps; ++w) {
    const float shrink = expf(warp_largest[w] - overall);
    total += warp_mixed[w][thread] * shrink;
    total_sum += warp_sums[w] * shrink;
  }
  if (thread < dim) to[2 + thread] = total;
  if (thread == 0) to[0] = overall, to[1] = total_sum;
}

template <class T>
__device__ void attention_join(const float* partial, const std::int32_t* inputs, Size blocks, int dim, T* out) {
  const Size used = (inputs[0] + kThreads) / kThreads;  // of context = inputs[0] + 1 keys, rounded up
  const float* const from = partial + blockIdx.x * blocks * (dim + 2);
  float overall = -INFINITY;
  for (Size b = 0; b < used; ++b) overall = fmaxf(overall, from[b * (dim + 2)]);
  float total = 0, sum = 0;
  const int d = threadIdx.x;
  if (d >= dim) return;
  for (Size b = 0; b < used; ++b) {
    const float* const part = from + b * (dim + 2);
    const float shrink = expf(part[0] - overall);
    sum += part[1] * shrink;
    total += part[2 + d] * shrink;
  }
  store(out + blockIdx.x * static_cast<Size>(dim) + d, total / sum);
}

}  // namespace

#define LLMPROF_DEFINE(name, T)                                                                                        \
  LLMPROF_KERNEL attention_prefill_##name(const T* q, Size q_stride, const T* keys, const T* values,                   \
                                          const std::int32_t* inputs, Size tokens, Size kv_heads, Size dim,            \
                                          Size capacity, float scale, T* out) {                                        \
    attention_prefill(q, q_stride, keys, values, inputs, tokens, kv_heads, static_cast<int>(dim), capacity, scale,     \
                      out);                                                                                            \
  }                                                                                                                    \
  LLMPROF_KERNEL attention_decode_##name(const T* q, Size q_stride, const T* keys, const T* values,                    \
                                         const std::int32_t* inputs, Size kv_heads, Size dim, Size capacity,           \
                                         float scale, float* partial) {                                                \
    attention_decode(q, q_stride, keys, values, inputs, kv_heads, static_cast<int>(dim), capacity, scale, partial);    \
  }                                                                                                                    \
  LLMPROF_KERNEL attention_join_##name(const float* partial, const std::int32_t* inputs, Size blocks, Size dim,        \
                                       T* out) {                                                                       \
    attention_join(partial, inputs, blocks, static_cast<int>(dim), out);                                               \
  }
LLMPROF_DEFINE(f32, float)
LLMPROF_DEFINE(bf16, Bf16)
#undef LLMPROF_DEFINE
