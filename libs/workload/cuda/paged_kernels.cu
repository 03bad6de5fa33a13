// The kernels of serving: rows of new tokens of sequences of different lengths, whose keys and values are in blocks,
// (blocks, G, block tokens, D) a layer. `inputs` holds three numbers for each row: its token, its position, and the
// place in `inputs` where the blocks of its sequence begin. A block of threads per row, unless said otherwise.

#include "workload/cuda/kernel.cuh"

namespace {

struct PagedRow {
  std::int32_t token, position;
  const std::int32_t* blocks;  // of its sequence
};

__device__ inline PagedRow paged_row(const std::int32_t* inputs, Size row) {
  return {inputs[3 * row], inputs[3 * row + 1], inputs + inputs[3 * row + 2]};
}

// The rows of one head in the cache.
struct PagedHead {
  const std::int32_t* blocks;
  Size heads, head;
  std::int32_t block_tokens;
  __device__ Size row(std::int32_t position) const {
    return (blocks[position / block_tokens] * heads + head) * block_tokens + position % block_tokens;
  }
};

template <class T>
__device__ void paged_embed(const std::int32_t* inputs, const T* table, const T* positions, Size n, T* out) {
  const PagedRow at = paged_row(inputs, blockIdx.x);
  const T* const from = table + at.token * n;
  const T* const position = positions == nullptr ? nullptr : positions + at.position * n;
  for (Size i = threadIdx.x; i < n; i += blockDim.x) {
    store(out + blockIdx.x * n + i, to_float(from[i]) + (position == nullptr ? 0.0F : to_float(position[i])));
  }
}

// As rotate_and_cache in infer_kernels.cu.
template <class T>
__device__ void paged_rotate_and_cache(T* q, const T* k, const T* v, const float* cosine, const float* sine,
                                       const std::int32_t* inputs, Size heads, Size kv_heads, Size dim,
                                       std::int32_t block_tokens, T* keys, T* values) {
  const Size row = blockIdx.x, half = dim / 2;
  const PagedRow at = paged_row(inputs, row);
  const PagedHead first_head{at.blocks, kv_heads, 0, block_tokens};
  const Size place = first_head.row(at.position);  // + head · block_tokens
  for (Size item = threadIdx.x; item < (heads + kv_heads) * half; item += blockDim.x) {
    const Size head = item / half, i = item % half;
    const bool query = head < heads;
    const T* const from = query ? q + (row * heads + head) * dim : k + (row * kv_heads + head - heads) * dim;
    T* const to = query ? q + (row * heads + head) * dim : keys + (place + (head - heads) * block_tokens) * dim;
    const float c = cosine[at.position * half + i], s = sine[at.position * half + i];
    const float first = to_float(from[i]), second = to_float(from[i + half]);
    store(to + i, first * c - second * s);
    store(to + i + half, second * c + first * s);
  }
  for (Size item = threadIdx.x; item < kv_heads * dim; item += blockDim.x) {
    values[(place + item / dim * block_tokens) * dim + item % dim] = v[row * kv_heads * dim + item];
  }
}

// Keys and values of qkv (rows, 3, H, D) into the cache.
template <class T>
__device__ void paged_cache(const T* qkv, const std::int32_t* inputs, Size heads, Size dim, std::int32_t block_tokens,
                            T* keys, T* values) {
  const Size row = blockIdx.x, width = heads * dim;
  const PagedRow at = paged_row(inputs, row);
  const PagedHead first_head{at.blocks, heads, 0, block_tokens};
  const Size place = first_head.row(at.position);
  for (Size item = threadIdx.x; item < width; item += blockDim.x) {
    const Size to = (place + item / dim * block_tokens) * dim + item % dim;
    keys[to] = qkv[(row * 3 + 1) * width + item];
    values[to] = qkv[(row * 3 + 2) * width + item];
  }
}

// ---- attention: a block per row and head walks through what its token may see, a key per thread at a time ------------
// One kernel for decodes and for chunks of prompts: simple, and no faster for a chunk than for as many decodes. The keys
// and values of all rows of a pass are in the cache before it runs.

constexpr int kPagedThreads = 128;
constexpr int kMostPagedDim = 128;

template <class T>
__device__ void paged_attention(const T* q, Size q_stride, const T* keys, const T* values, const std::int32_t* inputs,
                                Size kv_heads, int dim, std::int32_t block_tokens, float scale, T* out) {
  __shared__ float query[kMostPagedDim], shares[kPagedThreads];
  const Size row = blockIdx.x, head = blockIdx.y, heads = gridDim.y;
  const int thread = threadIdx.x;
  const PagedRow at = paged_row(inputs, row);
  const PagedHead cached{at.blocks, kv_heads, head / (heads / kv_heads), block_tokens};
  const std::int32_t context = at.position + 1;
  if (thread < dim) query[thread] = to_float(q[row * q_stride + head * dim + thread]) * scale;
  float largest = -INFINITY, sum = 0;
  float mixed = 0;  // of dimension `thread`
  for (std::int32_t begin = 0; begin < context; begin += kPagedThreads) {
    const std::int32_t mine = begin + thread;
    __syncthreads();  // the query is there; the shares before have been read
    float score = -INFINITY;
    if (mine < context) {
      const T* const from = keys + cached.row(mine) * dim;
      score = 0;
      for (int d = 0; d < dim; d += 8) {
        float key[8];
        load8(from + d, key);
        for (int i = 0; i < 8; ++i) score += query[d + i] * key[i];
      }
    }
    const float larger = fmaxf(largest, block_max(score));  // finite: the first key is seen by every row
    const float shrink = expf(largest - larger);
    shares[thread] = mine < context ? expf(score - larger) : 0.0F;
    sum = sum * shrink + block_sum(shares[thread]);  // which waits for the shares of all
    largest = larger;
    mixed *= shrink;
    const int count = context - begin < kPagedThreads ? context - begin : kPagedThreads;
    if (thread >= dim) continue;
    for (int j = 0; j < count; ++j) mixed += shares[j] * to_float(values[cached.row(begin + j) * dim + thread]);
  }
  if (thread < dim) store(out + (row * heads + head) * dim + thread, mixed / sum);
}

template <class T>
__device__ void gather_rows(const T* x, const std::int32_t* which, Size n, T* out) {
  const T* const from = x + which[blockIdx.x] * n;
  for (Size i = threadIdx.x; i < n; i += blockDim.x) out[blockIdx.x * n + i] = from[i];
}

}  // namespace

#define LLMPROF_DEFINE(name, T)                                                                                        \
  LLMPROF_KERNEL paged_embed_##name(const std::int32_t* inputs, const T* table, const T* positions, Size n, T* out) {  \
    paged_embed(inputs, table, positions, n, out);                                                                     \
  }                                                                                                                    \
  LLMPROF_KERNEL paged_rotate_and_cache_##name(T* q, const T* k, const T* v, const float* cosine, const float* sine,   \
                                               const std::int32_t* inputs, Size heads, Size kv_heads, Size dim,        \
                                               Size block_tokens, T* keys, T* values) {                                \
    paged_rotate_and_cache(q, k, v, cosine, sine, inputs, heads, kv_heads, dim,                                        \
                           static_cast<std::int32_t>(block_tokens), keys, values);                                     \
  }                                                                                                                    \
  LLMPROF_KERNEL paged_cache_##name(const T* qkv, const std::int32_t* inputs, Size heads, Size dim, Size block_tokens, \
                                    T* keys, T* values) {                                                              \
    paged_cache(qkv, inputs, heads, dim, static_cast<std::int32_t>(block_tokens), keys, values);                       \
  }                                                                                                                    \
  LLMPROF_KERNEL paged_attention_##name(const T* q, Size q_stride, const T* keys, const T* values,                     \
                                        const std::int32_t* inputs, Size kv_heads, Size dim, Size block_tokens,        \
                                        float scale, T* out) {                                                         \
    paged_attention(q, q_stride, keys, values, inputs, kv_heads, static_cast<int>(dim),                                \
                    static_cast<std::int32_t>(block_tokens), scale, out);                                              \
  }                                                                                                                    \
  LLMPROF_KERNEL gather_rows_##name(const T* x, const std::int32_t* which, Size n, T* out) {                           \
    gather_rows(x, which, n, out);                                                                                     \
  }
LLMPROF_DEFINE(f32, float)
LLMPROF_DEFINE(bf16, Bf16)
#undef LLMPROF_DEFINE
