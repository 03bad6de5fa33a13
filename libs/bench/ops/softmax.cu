// y = exp(x - max) / Σ exp(x - max), row by row. Hopper and later share a long row, one of a vocabulary, between eight
// blocks: each keeps its part in registers, so that the row is read once.

#include <cooperative_groups.h>

#include "bench/ops/rows.cuh"

namespace llmprof {

struct OneBlock {
  __device__ float max(float value) const { return row_max(value); }
  __device__ float sum(float value) const { return row_sum(value); }
};

template <int kAccess, class T, class Threads>
__device__ void softmax_row(const T* x, T* y, int width, const Threads& threads) {
  auto row = make_row<T, kAccess>(width, [x](int at) { return load_piece<kAccess>(x + at); });
  float largest = -INFINITY, sum = 0;
  row.each([&](int, const float* v) {
    for (int j = 0; j < kAccess; ++j) largest = fmaxf(largest, v[j]);
  });
  largest = threads.max(largest);
  row.each([&](int, const float* v) {
    for (int j = 0; j < kAccess; ++j) sum += __expf(v[j] - largest);
  });
  const float scale = 1.0f / threads.sum(sum);
  row.each([&](int at, const float* v) {
    float result[kAccess];
    for (int j = 0; j < kAccess; ++j) result[j] = __expf(v[j] - largest) * scale;
    store_floats<kAccess>(y + at, result);
  });
}

template <class T>
__device__ void softmax(const T* x, T* y, std::int64_t rows, int width) {
  const std::int64_t row = row_index();
  if (width % Pack<T>::kSize == 0) {
    softmax_row<Pack<T>::kSize>(x + row * width, y + row * width, row < rows ? width : 0, OneBlock{});
  } else {
    softmax_row<1>(x + row * width, y + row * width, row < rows ? width : 0, OneBlock{});
  }
}

constexpr int kCluster = 8;  // blocks; as in softmax.cpp

#if __CUDA_ARCH__ >= 900
struct Cluster {
  float* slot;  // two, in shared memory: one for each reduction

  __device__ float max(float value) const {
    value = block_max(value);
    return across(slot, value, [](float a, float b) { return fmaxf(a, b); });
  }
  __device__ float sum(float value) const {
    value = block_sum(value);
    return across(slot + 1, value, [](float a, float b) { return a + b; });
  }
  template <class F>
  __device__ static float across(float* mine, float value, F f) {
    auto cluster = cooperative_groups::this_cluster();
    if (threadIdx.x == 0) *mine = value;
    cluster.sync();
    float result = *cluster.map_shared_rank(mine, 0);
    for (int i = 1; i < kCluster; ++i) result = f(result, *cluster.map_shared_rank(mine, i));
    return result;
  }
};
#endif

template <int kAccess, class T>
__device__ void softmax_part(const T* x, T* y, int width) {
#if __CUDA_ARCH__ >= 900
  __shared__ float slot[2];
  const int part = (width + kCluster * kAccess - 1) / (kCluster * kAccess) * kAccess;
  const int rank = blockIdx.x % kCluster, begin = min(rank * part, width);
  softmax_row<kAccess>(x + begin, y + begin, min(part, width - begin), Cluster{slot});
  cooperative_groups::this_cluster().sync();  // the others may still read this block's slots
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

extern "C" {
__global__ void __launch_bounds__(1024) softmax_float32(const float* x, float* y, std::int64_t rows, int width) {
  softmax(x, y, rows, width);
}
__global__ void __launch_bounds__(1024) softmax_float16(const __half* x, __half* y, std::int64_t rows, int width) {
  softmax(x, y, rows, width);
}
__global__ void __launch_bounds__(1024)
    softmax_bfloat16(const __nv_bfloat16* x, __nv_bfloat16* y, std::int64_t rows, int width) {
  softmax(x, y, rows, width);
}
__global__ void LLMPROF_CLUSTER __launch_bounds__(1024) softmax_cluster_float32(const float* x, float* y, int width) {
  softmax_cluster(x, y, width);
}
__global__ void LLMPROF_CLUSTER __launch_bounds__(1024) softmax_cluster_float16(const __half* x, __half* y, int width) {
  softmax_cluster(x, y, width);
}
__global__ void LLMPROF_CLUSTER __launch_bounds__(1024)
    softmax_cluster_bfloat16(const __nv_bfloat16* x, __nv_bfloat16* y, int width) {
  softmax_cluster(x, y, width);
}
}

}  // namespace llmprof
