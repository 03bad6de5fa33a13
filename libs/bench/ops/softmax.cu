// y = exp(x - max) / Σ exp(x - max), row by row. Hopper and later share a long row, one of a vocabulary, between eight
// blocks: each keeps its part in registers, so that the row is read once.

#include <cooperative_groups.h>

#include "bench/ops/activation.cuh"
#include "bench/ops/rows.cuh"

namespace llmprof {

// The largest of some values, and the sum of 2^(their distance to it): what parts of a row know of it.
struct Seen {
  float largest, sum;

  // Relative to a value at least as large. Of no values, or infinitely small ones only, the sum is 0.
  __device__ float sum_to(float larger) const { return sum * fast_exp2(largest - reference(larger)); }
  __device__ static float reference(float largest) { return largest == -INFINITY ? 0.0f : largest; }
};

__device__ inline Seen seen_by_all(const Seen& mine) {
  const float largest = row_max(mine.largest);
  return {largest, row_sum(mine.sum_to(largest))};
}

// `combine` makes of what one thread saw what all threads of the row saw.
template <int kAccess, class T, class Combine>
__device__ void softmax_row(const T* x, T* y, int width, Combine combine) {
  auto row = make_row<T, kAccess>(width, [x](int at) { return load_piece<kAccess>(x + at); });
  Seen seen{-INFINITY, 0};
  row.each([&](int, const float* v) {
    for (int j = 0; j < kAccess; ++j) seen.largest = fmaxf(seen.largest, v[j]);
  });
  seen.largest *= kLog2E;
  row.each([&](int, const float* v) {
    for (int j = 0; j < kAccess; ++j) seen.sum += fast_exp2(fmaf(v[j], kLog2E, -Seen::reference(seen.largest)));
  });
  seen = combine(seen);
  const float scale = 1.0f / seen.sum;
  row.each([&](int at, const float* v) {
    float result[kAccess];
    for (int j = 0; j < kAccess; ++j) result[j] = fast_exp2(fmaf(v[j], kLog2E, -seen.largest)) * scale;
    store_floats<kAccess>(y + at, result);
  });
}

template <class T>
__device__ void softmax(const T* x, T* y, std::int64_t rows, int width) {
  const std::int64_t row = row_index();
  if (width % Pack<T>::kSize == 0) {
    softmax_row<Pack<T>::kSize>(x + row * width, y + row * width, row < rows ? width : 0, seen_by_all);
  } else {
    softmax_row<1>(x + row * width, y + row * width, row < rows ? width : 0, seen_by_all);
  }
}

constexpr int kCluster = 8;  // blocks; as in softmax.cpp

template <int kAccess, class T>
__device__ void softmax_part(const T* x, T* y, int width) {
#if __CUDA_ARCH__ >= 900
  __shared__ Seen block;
  const auto cluster = cooperative_groups::this_cluster();
  const int part = (width + kCluster * kAccess - 1) / (kCluster * kAccess) * kAccess;
  const int begin = min(static_cast<int>(blockIdx.x % kCluster) * part, width);
  softmax_row<kAccess>(x + begin, y + begin, min(part, width - begin), [&](const Seen& mine) {
    const Seen ours = seen_by_all(mine);
    if (threadIdx.x == 0) block = ours;
    cluster.sync();
    Seen all{-INFINITY, 0};
    for (int i = 0; i < kCluster; ++i) all.largest = fmaxf(all.largest, cluster.map_shared_rank(&block, i)->largest);
    for (int i = 0; i < kCluster; ++i) all.sum += cluster.map_shared_rank(&block, i)->sum_to(all.largest);
    return all;
  });
  cluster.sync();  // the others may still read what this block saw
#endif
}

template <class T>
__device__ void softmax_cluster(const T* x, T* y, int width) {
  const std::int64_t row = blockIdx.x / kCluster;
  if (width % Pack<T>::kSize == 0) {
    softmax_part<Pack<T>::kSize>(x + row * width, y + row * width, width);
  } else {
    softmax_part<1>(x + row * width, y + row * width, width);
  }
}

#if __CUDA_ARCH__ >= 900
#define LLMPROF_CLUSTER __cluster_dims__(kCluster, 1, 1)
#else
#define LLMPROF_CLUSTER
#endif

#define LLMPROF_SOFTMAX(name, T)                                                                \
  LLMPROF_ROW_KERNEL softmax_##name(const T* x, T* y, std::int64_t rows, int width) {           \
    softmax(x, y, rows, width);                                                                 \
  }                                                                                             \
  extern "C" __global__ void LLMPROF_CLUSTER __launch_bounds__(kRowThreads, kRowBlocks)         \
      softmax_cluster_##name(const T* x, T* y, int width) {                                     \
    softmax_cluster(x, y, width);                                                               \
  }
LLMPROF_EACH_TYPE(LLMPROF_SOFTMAX)

}  // namespace llmprof
