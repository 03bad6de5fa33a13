// A layer of experts around its two grouped products (ops/grouped_gemm.cu): every token chooses its experts, the rows
// are sorted by expert, and what the experts gave is summed up per token. Nothing of it visits the host.

#include "bench/cuda/vector.cuh"

namespace llmprof {

// One warp per token: the `top_k` largest logits, the lower index of equal ones, and the softmax over them. A row's
// place among those of its expert is the order in which tokens come, which differs from run to run; no result does.
__device__ void moe_route(const float* logits, int* counts, int* choice, int* place, float* weight, int tokens,
                          int experts, int top_k) {
  extern __shared__ float memory[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int token = blockIdx.x * (blockDim.x / 32) + warp;
  if (token >= tokens) return;
  float* const left = memory + warp * experts;
  for (int i = lane; i < experts; i += 32) left[i] = logits[static_cast<std::int64_t>(token) * experts + i];
  __syncwarp();
  float first = 0, sum = 0;
  const std::int64_t at = static_cast<std::int64_t>(token) * top_k;
  for (int k = 0; k < top_k; ++k) {
    float best = -INFINITY;
    int index = experts;
    for (int i = lane; i < experts; i += 32) {
      if (left[i] > best) best = left[i], index = i;
    }
    for (int offset = 16; offset > 0; offset /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, best, offset);
      const int other_index = __shfl_xor_sync(0xffffffffu, index, offset);
      if (other > best || (other == best && other_index < index)) best = other, index = other_index;
    }
    if (index == experts) index = k;  // logits that are not numbers: any expert, but one that exists
    if (k == 0) first = best;
    const float share = expf(best - first);
    sum += share;
    if (lane == 0) {
      left[index] = -INFINITY;
      choice[at + k] = index;
      place[at + k] = atomicAdd(counts + index, 1);
      weight[at + k] = share;
    }
    __syncwarp();
  }
  for (int k = lane; k < top_k; k += 32) weight[at + k] /= sum;
}

struct GroupTile {
  int group, begin, end, unused;
};

// Inclusive sums over the block of 1024 threads, in place.
__device__ inline int block_scan(int value, int* shared) {
  const int at = threadIdx.x;
  shared[at] = value;
  __syncthreads();
  for (int offset = 1; offset < 1024; offset *= 2) {
    const int before = at >= offset ? shared[at - offset] : 0;
    __syncthreads();
    shared[at] += before;
    __syncthreads();
  }
  return shared[at];
}

// Rows get their final place; the first block also writes the table of tiles. At most 1024 experts.
__device__ void moe_sort(const int* counts, const int* choice, int* place, int* source, GroupTile* tiles,
                         int* tile_count, int rows, int experts, int top_k, int tile_rows) {
  __shared__ int ends[1024], tile_ends[1024];
  const int expert = threadIdx.x;
  const int count = expert < experts ? counts[expert] : 0;
  block_scan(count, ends);
  if (blockIdx.x == 0) {
    const int mine = (count + tile_rows - 1) / tile_rows;
    const int last = block_scan(mine, tile_ends);
    for (int i = 0; i < mine; ++i) {
      const int begin = ends[expert] - count + i * tile_rows;
      tiles[last - mine + i] = {expert, begin, min(begin + tile_rows, ends[expert]), 0};
    }
    if (threadIdx.x == 1023) *tile_count = last;
  }
  const int item = blockIdx.x * 1024 + threadIdx.x;
  if (item >= rows) return;
  const int chosen = choice[item];
  const int row = (chosen == 0 ? 0 : ends[chosen - 1]) + place[item];
  place[item] = row;
  source[row] = item / top_k;
}

// out = silu(gate) * up, where a row holds all of the gate, then all of up. A thread takes eight values.
template <class T>
__device__ void moe_activate(const T* in, T* out, std::int64_t rows, std::int64_t width) {
  constexpr int kPack = Pack<T>::kSize;
  const std::int64_t packs = width / kPack;
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item >= rows * packs) return;
  const std::int64_t row = item / packs, at = item % packs * kPack;
  const Pack<T> gate = load_pack(in + row * 2 * width + at), up = load_pack(in + row * 2 * width + width + at);
  Pack<T> result;
  for (int i = 0; i < kPack; ++i) {
    const float g = to_float(gate.at[i]);
    result.at[i] = from_float<T>(g / (1 + __expf(-g)) * to_float(up.at[i]));
  }
  store_pack(out + row * width + at, result);
}

// y of a token: the sum of its rows, each times its weight.
template <class T>
__device__ void moe_combine(const T* rows, const int* place, const float* weight, T* y, std::int64_t tokens,
                            std::int64_t hidden, int top_k) {
  constexpr int kPack = Pack<T>::kSize;
  const std::int64_t packs = hidden / kPack;
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item >= tokens * packs) return;
  const std::int64_t token = item / packs, at = item % packs * kPack;
  float sums[kPack] = {};
  for (int k = 0; k < top_k; ++k) {
    const Pack<T> row = load_pack(rows + place[token * top_k + k] * hidden + at);
    const float share = weight[token * top_k + k];
    for (int i = 0; i < kPack; ++i) sums[i] += share * to_float(row.at[i]);
  }
  Pack<T> result;
  for (int i = 0; i < kPack; ++i) result.at[i] = from_float<T>(sums[i]);
  store_pack(y + token * hidden + at, result);
}

extern "C" {
__global__ void __launch_bounds__(128)
moe_route_float32(const float* logits, int* counts, int* choice, int* place, float* weight, int tokens, int experts,
                  int top_k) {
  moe_route(logits, counts, choice, place, weight, tokens, experts, top_k);
}
__global__ void __launch_bounds__(1024)
moe_sort_rows(const int* counts, const int* choice, int* place, int* source, GroupTile* tiles, int* tile_count, int rows,
              int experts, int top_k, int tile_rows) {
  moe_sort(counts, choice, place, source, tiles, tile_count, rows, experts, top_k, tile_rows);
}
#define LLMPROF_MOE(name, T)                                                                                          \
  __global__ void moe_activate_##name(const T* in, T* out, std::int64_t rows, std::int64_t width) {                   \
    moe_activate(in, out, rows, width);                                                                               \
  }                                                                                                                   \
  __global__ void moe_combine_##name(const T* rows, const int* place, const float* weight, T* y, std::int64_t tokens, \
                                     std::int64_t hidden, int top_k) {                                                \
    moe_combine(rows, place, weight, y, tokens, hidden, top_k);                                                       \
  }
LLMPROF_MOE(bfloat16, __nv_bfloat16)
LLMPROF_MOE(float16, __half)

}

}  // namespace llmprof
