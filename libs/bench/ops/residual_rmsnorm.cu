// sum = x + residual; y = rmsnorm(sum) · weight. The sum is normed as it is stored.

#include "bench/ops/norm.cuh"

namespace llmprof {

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

extern "C" {
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    residual_rmsnorm_float32(const float* x, const float* residual, const float* weight, float* sum, float* y,
                             std::int64_t rows, int width, float eps) {
  residual_rmsnorm<float>({x, residual, weight, sum, y, width, eps}, rows);
}
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    residual_rmsnorm_float16(const __half* x, const __half* residual, const __half* weight, __half* sum, __half* y,
                             std::int64_t rows, int width, float eps) {
  residual_rmsnorm<__half>({x, residual, weight, sum, y, width, eps}, rows);
}
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    residual_rmsnorm_bfloat16(const __nv_bfloat16* x, const __nv_bfloat16* residual, const __nv_bfloat16* weight,
                              __nv_bfloat16* sum, __nv_bfloat16* y, std::int64_t rows, int width, float eps) {
  residual_rmsnorm<__nv_bfloat16>({x, residual, weight, sum, y, width, eps}, rows);
}
}

}  // namespace llmprof
