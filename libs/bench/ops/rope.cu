// Rotary embedding in place: value i of a head's first half and value i of its second are a pair that turns by
// position · base^(-2i / head_dim). A block rotates all heads of one token; the angles are the same for all of them.

#include "bench/ops/rows.cuh"

namespace llmprof {

constexpr double kTurnsPerRadian = 0.15915494309189535;

// Angles by turns, reduced in float64: in float32 an angle of 100,000 radians is off by 0.004.
__device__ inline float2 rotation(int position, double step, int i) {
  double frequency = 1;  // step^i
  for (double power = step; i > 0; i /= 2, power *= power) {
    if (i % 2 == 1) frequency *= power;
  }
  const double turns = position * frequency * kTurnsPerRadian;
  float sine, cosine;
  sincospif(2 * static_cast<float>(turns - rint(turns)), &sine, &cosine);
  return {cosine, sine};
}

template <class T>
struct Rope {
  T *q, *k;
  const int* positions;
  int heads, kv_heads, half;
  double step;  // base^(-2 / head_dim)

  __device__ T* head(std::int64_t token, int index) const {
    return index < heads ? q + (token * heads + index) * 2 * half : k + (token * kv_heads + index - heads) * 2 * half;
  }
};

// threadIdx.x: a piece of a half, kAccess values; threadIdx.y: a head, and every blockDim.y-th after it.
template <int kAccess, class T>
struct HeadPairs {
  static constexpr int kHeads = 2;  // that a thread has in flight
  Piece<T, kAccess> low[kHeads], high[kHeads];

  __device__ void load(const Rope<T>& a, std::int64_t token, int first) {
#pragma unroll
    for (int u = 0; u < kHeads; ++u) {
      const int index = first + u * blockDim.y;
      if (index >= a.heads + a.kv_heads) continue;
      const T* head = a.head(token, index) + threadIdx.x * kAccess;
      low[u] = load_piece<kAccess>(head);
      high[u] = load_piece<kAccess>(head + a.half);
    }
  }

  __device__ void turn_and_store(const Rope<T>& a, std::int64_t token, int first, const float2* turn) {
#pragma unroll
    for (int u = 0; u < kHeads; ++u) {
      const int index = first + u * blockDim.y;
      if (index >= a.heads + a.kv_heads) continue;
      float l[kAccess], h[kAccess];
      low[u].get(l);
      high[u].get(h);
#pragma unroll
      for (int j = 0; j < kAccess; ++j) {
        const float x = l[j], y = h[j];
        l[j] = x * turn[j].x - y * turn[j].y;
        h[j] = y * turn[j].x + x * turn[j].y;
      }
      T* head = a.head(token, index) + threadIdx.x * kAccess;
      store_floats<kAccess>(head, l);
      store_floats<kAccess>(head + a.half, h);
    }
  }
};

template <int kAccess, class T>
__device__ void rope(const Rope<T>& a) {
  extern __shared__ float2 turns[];
  const std::int64_t token = blockIdx.x;
  const int threads = blockDim.x * blockDim.y;
  HeadPairs<kAccess, T> pairs;
  pairs.load(a, token, threadIdx.y);  // on its way while the angles are computed
  for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < a.half; i += threads) {
    turns[i] = rotation(a.positions[token], a.step, i);
  }
  __syncthreads();
  float2 turn[kAccess];  // the same for all heads
#pragma unroll
  for (int j = 0; j < kAccess; ++j) turn[j] = turns[threadIdx.x * kAccess + j];
  const int step = pairs.kHeads * blockDim.y;
  for (int first = threadIdx.y; first < a.heads + a.kv_heads; first += step) {
    if (first >= step) pairs.load(a, token, first);
    pairs.turn_and_store(a, token, first, turn);
  }
}

template <class T>
__device__ void rope_any(const Rope<T>& a) {
  if (a.half % Pack<T>::kSize == 0) {
    rope<Pack<T>::kSize>(a);
  } else {
    rope<1>(a);
  }
}

#define LLMPROF_ROPE(name, T)                                                                                      \
  extern "C" __global__ void rope_##name(T* q, T* k, const int* positions, int heads, int kv_heads, int half,      \
                                         double step) {                                                            \
    rope_any<T>({q, k, positions, heads, kv_heads, half, step});                                                   \
  }
LLMPROF_EACH_TYPE(LLMPROF_ROPE)

}  // namespace llmprof
