// The kernels of inference but for attention. One block per row, unless said otherwise; inputs[0] is the position of the
// first new token of every sequence, the tokens (B, T) follow it: a graph captured once serves every step.

#include "workload/cuda/kernel.cuh"

namespace {

template <class T>
__device__ void embed(const std::int32_t* inputs, const T* table, const T* positions, Size tokens, Size n, T* out) {
  const Size row = blockIdx.x;
  const T* const from = table + static_cast<Size>(inputs[1 + row]) * n;
  const T* const position = positions == nullptr ? nullptr : positions + (inputs[0] + row % tokens) * n;
  for (Size i = threadIdx.x; i < n; i += blockDim.x) {
    store(out + row * n + i, to_float(from[i]) + (position == nullptr ? 0.0F : to_float(position[i])));
  }
}

// x: a row every `stride` values; out: rows of n.
template <class T>
__device__ void rms_norm(const T* x, Size stride, const T* weight, float epsilon, Size n, T* out) {
  x += blockIdx.x * stride;
  out += blockIdx.x * n;
  float sum = 0;
  for (Size i = threadIdx.x; i < n; i += blockDim.x) sum += to_float(x[i]) * to_float(x[i]);
  const float inverse = 1.0F / sqrtf(block_sum(sum) / static_cast<float>(n) + epsilon);
  for (Size i = threadIdx.x; i < n; i += blockDim.x) store(out + i, to_float(x[i]) * inverse * to_float(weight[i]));
}

template <class T>
__device__ void layer_norm(const T* x, Size stride, const T* weight, const T* bias, float epsilon, Size n, T* out) {
  x += blockIdx.x * stride;
  out += blockIdx.x * n;
  const RowMoments row = row_moments(x, epsilon, n);
  for (Size i = threadIdx.x; i < n; i += blockDim.x) {
    store(out + i, (to_float(x[i]) - row.mean) * row.inverse * to_float(weight[i]) + to_float(bias[i]));
  }
}

// Rotary positions, pairs (i, i + D/2): the queries (B, T, H, D) in place, the keys (B, T, G, D) on their way into the
// cache (B, G, capacity, D), where the values go as they are.
template <class T>
__device__ void rotate_and_cache(T* q, const T* k, const T* v, const float* cosine, const float* sine,
                                 const std::int32_t* inputs, Size tokens, Size heads, Size kv_heads, Size dim,
                                 Size capacity, T* keys, T* values) {
  const Size row = blockIdx.x, half = dim / 2;
  const Size position = inputs[0] + row % tokens;
  const Size block = row / tokens * kv_heads * capacity + position;  // + head · capacity: the row in the cache
  for (Size item = threadIdx.x; item < (heads + kv_heads) * half; item += blockDim.x) {
    const Size head = item / half, i = item % half;
    const bool query = head < heads;
    const T* const from = query ? q + (row * heads + head) * dim : k + (row * kv_heads + head - heads) * dim;
    T* const to = query ? q + (row * heads + head) * dim : keys + (block + (head - heads) * capacity) * dim;
    const float c = cosine[position * half + i], s = sine[position * half + i];
    const float first = to_float(from[i]), second = to_float(from[i + half]);
    store(to + i, first * c - second * s);
    store(to + i + half, second * c + first * s);
  }
  for (Size item = threadIdx.x; item < kv_heads * dim; item += blockDim.x) {
    values[(block + item / dim * capacity) * dim + item % dim] = v[row * kv_heads * dim + item];
  }
}

// Keys and values of qkv (B, T, 3, H, D) into the cache.
template <class T>
__device__ void cache(const T* qkv, const std::int32_t* inputs, Size tokens, Size heads, Size dim, Size capacity,
                      T* keys, T* values) {
  const Size row = blockIdx.x, width = heads * dim;
  const Size block = row / tokens * heads * capacity + inputs[0] + row % tokens;
  for (Size item = threadIdx.x; item < width; item += blockDim.x) {
    const Size to = (block + item / dim * capacity) * dim + item % dim;
    keys[to] = qkv[(row * 3 + 1) * width + item];
    values[to] = qkv[(row * 3 + 2) * width + item];
  }
}

template <class T>
__device__ void silu_multiply(T* gate, const T* up, Size count) {  // gate = silu(gate) · up
  for (Size i = first_element(); i < count; i += element_step()) {
    const float g = to_float(gate[i]);
    store(gate + i, g / (1.0F + expf(-g)) * to_float(up[i]));
  }
}

template <class T>
__device__ void gelu(const T* x, Size count, T* out) {
  for (Size i = first_element(); i < count; i += element_step()) store(out + i, gelu_of(to_float(x[i])));
}

// Every bit of the result depends on every bit of the argument.
__device__ inline std::uint32_t mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7FEB352DU;
  x ^= x >> 15;
  x *= 0x846CA68BU;
  return x ^ (x >> 16);
}

// The numbers of the CPU's fill_random, bit for bit where that one multiplies and adds in one step.
template <class T>
__device__ void fill_random(std::uint32_t key, float center, float width, Size count, T* out) {
  for (Size i = first_element(); i < count; i += element_step()) {
    const std::uint32_t bits = mix(static_cast<std::uint32_t>(i) ^ key) >> 8;
    store(out + i, fmaf(width, static_cast<float>(bits) * (1.0F / 8388608.0F) - 1.0F, center));
  }
}

template <class T>
__device__ void convert(const float* x, Size count, T* out) {
  for (Size i = first_element(); i < count; i += element_step()) store(out + i, x[i]);
}

}  // namespace

#define LLMPROF_OF_BOTH(define) define(f32, float) define(bf16, Bf16)

#define LLMPROF_DEFINE(name, T)                                                                                        \
  LLMPROF_KERNEL embed_##name(const std::int32_t* inputs, const T* table, const T* positions, Size tokens, Size n,     \
                              T* out) {                                                                                \
    embed(inputs, table, positions, tokens, n, out);                                                                   \
  }                                                                                                                    \
  LLMPROF_KERNEL rms_norm_##name(const T* x, Size stride, const T* weight, float epsilon, Size n, T* out) {            \
    rms_norm(x, stride, weight, epsilon, n, out);                                                                      \
  }                                                                                                                    \
  LLMPROF_KERNEL layer_norm_##name(const T* x, Size stride, const T* weight, const T* bias, float epsilon, Size n,     \
                                   T* out) {                                                                           \
    layer_norm(x, stride, weight, bias, epsilon, n, out);                                                              \
  }                                                                                                                    \
  LLMPROF_KERNEL rotate_and_cache_##name(T* q, const T* k, const T* v, const float* cosine, const float* sine,         \
                                         const std::int32_t* inputs, Size tokens, Size heads, Size kv_heads, Size dim, \
                                         Size capacity, T* keys, T* values) {                                          \
    rotate_and_cache(q, k, v, cosine, sine, inputs, tokens, heads, kv_heads, dim, capacity, keys, values);             \
  }                                                                                                                    \
  LLMPROF_KERNEL cache_##name(const T* qkv, const std::int32_t* inputs, Size tokens, Size heads, Size dim,             \
                              Size capacity, T* keys, T* values) {                                                     \
    cache(qkv, inputs, tokens, heads, dim, capacity, keys, values);                                                    \
  }                                                                                                                    \
  LLMPROF_KERNEL silu_multiply_##name(T* gate, const T* up, Size count) { silu_multiply(gate, up, count); }            \
  LLMPROF_KERNEL gelu_##name(const T* x, Size count, T* out) { gelu(x, count, out); }                                  \
  LLMPROF_KERNEL fill_random_##name(std::uint32_t key, float center, float width, Size count, T* out) {                \
    fill_random(key, center, width, count, out);                                                                       \
  }                                                                                                                    \
  LLMPROF_KERNEL convert_##name(const float* x, Size count, T* out) { convert(x, count, out); }
LLMPROF_OF_BOTH(LLMPROF_DEFINE)
#undef LLMPROF_DEFINE

// The likeliest token of each sequence, the smaller one among equals, becomes its next input; the position moves on.
LLMPROF_KERNEL argmax(const float* logits, Size vocab, Size advance, std::int32_t* inputs) {
  __shared__ float largest[kLanes];
  __shared__ int places[kLanes];
  const float* const row = logits + blockIdx.x * vocab;
  float best = -INFINITY;
  int place = 0x7FFFFFFF;
  for (Size i = threadIdx.x; i < vocab; i += blockDim.x) {
    if (row[i] > best || place == 0x7FFFFFFF) best = row[i], place = static_cast<int>(i);
  }
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  for (int round = 0; round < 2; ++round) {
    for (int offset = kLanes / 2; offset > 0; offset /= 2) {
      const float other = __shfl_xor_sync(kAllLanes, best, offset);
      const int other_place = __shfl_xor_sync(kAllLanes, place, offset);
      if (other > best || (other == best && other_place < place)) best = other, place = other_place;
    }
    if (round == 1) break;
    if (lane == 0) largest[warp] = best, places[warp] = place;
    __syncthreads();
    const bool one = lane < static_cast<int>(blockDim.x) / kLanes;
    best = one ? largest[lane] : -INFINITY;
    place = one ? places[lane] : 0x7FFFFFFF;
  }
  if (threadIdx.x != 0) return;
  inputs[1 + blockIdx.x] = place < vocab ? place : 0;
  if (blockIdx.x == 0) inputs[0] += static_cast<std::int32_t>(advance);
}
