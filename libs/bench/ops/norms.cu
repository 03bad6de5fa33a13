// Norms of rows, one row per row of threads (rows.cuh): LayerNorm alone and with the gelu that follows it, with one pass
// through memory; RMSNorm alone and of x + residual, which is normed as it is stored.

#include "bench/ops/activation.cuh"
#include "bench/ops/rows.cuh"

namespace llmprof {

// With few rows, parameters are not yet in the cache when they are needed: they are sent for before the row is reduced.
template <class T>
__device__ inline void send_for(const T* parameters, int width) {
  constexpr int kFewBlocks = 512, kValues = 128 / sizeof(T);
  if (gridDim.x > kFewBlocks) return;
  for (int at = threadIdx.x * kValues; at < width; at += blockDim.x * kValues) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(parameters + at));
  }
}

// y = activation((x - mean) / √(variance + eps) · weight + bias). The variance is of the differences from the mean,
// which does not cancel as a difference of squares would.
template <int kAccess, class T, class Activation>
__device__ inline void layernorm_row(const T* x, const T* weight, const T* bias, T* y, int width, bool exists,
                                     float eps, Activation activation) {
  auto row = make_row<T, kAccess>(exists ? width : 0, [x](int at) { return load_piece<kAccess>(x + at); });
  send_for(weight, width);
  send_for(bias, width);
  float sum = 0, squares = 0;
  row.each([&](int, const float* v) {
    for (int j = 0; j < kAccess; ++j) sum += v[j];
  });
  const float mean = row_sum(sum) / static_cast<float>(width);
  row.each([&](int, const float* v) {
    for (int j = 0; j < kAccess; ++j) squares += (v[j] - mean) * (v[j] - mean);
  });
  const float scale = rsqrtf(row_sum(squares) / static_cast<float>(width) + eps);
  row.each([&](int at, const float* v) {
    float w[kAccess], b[kAccess], result[kAccess];
    load_floats<kAccess>(weight + at, w);
    load_floats<kAccess>(bias + at, b);
    for (int j = 0; j < kAccess; ++j) result[j] = activation((v[j] - mean) * scale * w[j] + b[j]);
    store_floats<kAccess>(y + at, result);
  });
}

template <class T, class Activation>
__device__ inline void layernorm_rows(const T* x, const T* weight, const T* bias, T* y, std::int64_t rows, int width,
                                      float eps, Activation activation) {
  const std::int64_t row = row_index();
  if (width % Pack<T>::kSize == 0) {
    layernorm_row<Pack<T>::kSize>(x + row * width, weight, bias, y + row * width, width, row < rows, eps, activation);
  } else {
    layernorm_row<1>(x + row * width, weight, bias, y + row * width, width, row < rows, eps, activation);
  }
}

// y = x / √(mean of squares + eps) · weight, of what `load(column)` gives.
template <class T, int kAccess, class Load>
__device__ inline void rmsnorm_row(Load load, const T* weight, T* y, int width, bool exists, float eps) {
  auto row = make_row<T, kAccess>(exists ? width : 0, load);
  send_for(weight, width);
  float squares = 0;
  row.each([&](int, const float* v) {
    for (int j = 0; j < kAccess; ++j) squares += v[j] * v[j];
  });
  const float scale = rsqrtf(row_sum(squares) / static_cast<float>(width) + eps);
  row.each([&](int at, const float* v) {
    float w[kAccess], result[kAccess];
    load_floats<kAccess>(weight + at, w);
    for (int j = 0; j < kAccess; ++j) result[j] = v[j] * scale * w[j];
    store_floats<kAccess>(y + at, result);
  });
}

template <int kAccess, class T>
__device__ void rmsnorm_of(const T* x, const T* weight, T* y, int width, bool exists, float eps) {
  rmsnorm_row<T, kAccess>([x](int at) { return load_piece<kAccess>(x + at); }, weight, y, width, exists, eps);
}

template <class T>
__device__ void rmsnorm(const T* x, const T* weight, T* y, std::int64_t rows, int width, float eps) {
  const std::int64_t row = row_index();
  if (width % Pack<T>::kSize == 0) {
    rmsnorm_of<Pack<T>::kSize>(x + row * width, weight, y + row * width, width, row < rows, eps);
  } else {
    rmsnorm_of<1>(x + row * width, weight, y + row * width, width, row < rows, eps);
  }
}

template <class T>
struct ResidualRmsnorm {
  const T *x, *residual, *weight;
  T *sum, *y;
  int width;
  float eps;
};

template <int kAccess, class T>
__device__ void residual_rmsnorm_row(const ResidualRmsnorm<T>& a, std::int64_t row, bool exists) {
  const T *x = a.x + row * a.width, *residual = a.residual + row * a.width;
  T* sum = a.sum + row * a.width;
  const auto load = [=](int at) {
    Piece<T, kAccess> piece = load_piece<kAccess>(x + at);
    float value[kAccess], added[kAccess];
    piece.get(value);
    load_floats<kAccess>(residual + at, added);
    for (int j = 0; j < kAccess; ++j) value[j] += added[j];
    piece.set(value);
    store_piece(sum + at, piece);
    return piece;
  };
  rmsnorm_row<T, kAccess>(load, a.weight, a.y + row * a.width, a.width, exists, a.eps);
}

template <class T>
__device__ void residual_rmsnorm(const ResidualRmsnorm<T>& a, std::int64_t rows) {
  const std::int64_t row = row_index();
  if (a.width % Pack<T>::kSize == 0) {
    residual_rmsnorm_row<Pack<T>::kSize>(a, row, row < rows);
  } else {
    residual_rmsnorm_row<1>(a, row, row < rows);
  }
}

#define LLMPROF_NORMS(name, T)                                                                                         \
  LLMPROF_ROW_KERNEL layernorm_##name(const T* x, const T* weight, const T* bias, T* y, std::int64_t rows, int width,  \
                                      float eps) {                                                                     \
    layernorm_rows(x, weight, bias, y, rows, width, eps, [](float value) { return value; });                           \
  }                                                                                                                    \
  LLMPROF_ROW_KERNEL layernorm_gelu_##name(const T* x, const T* weight, const T* bias, T* y, std::int64_t rows,        \
                                           int width, float eps) {                                                     \
    layernorm_rows(x, weight, bias, y, rows, width, eps, [](float value) { return gelu(value); });                     \
  }                                                                                                                    \
  LLMPROF_ROW_KERNEL rmsnorm_##name(const T* x, const T* weight, T* y, std::int64_t rows, int width, float eps) {      \
    rmsnorm(x, weight, y, rows, width, eps);                                                                           \
  }                                                                                                                    \
  LLMPROF_ROW_KERNEL residual_rmsnorm_##name(const T* x, const T* residual, const T* weight, T* sum, T* y,             \
                                             std::int64_t rows, int width, float eps) {                                \
    residual_rmsnorm<T>({x, residual, weight, sum, y, width, eps}, rows);                                              \
  }
LLMPROF_EACH_TYPE(LLMPROF_NORMS)

}  // namespace llmprof
