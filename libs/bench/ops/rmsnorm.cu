// y = x / √(mean of squares + eps) · weight, row by row.

#include "bench/ops/norm.cuh"

namespace llmprof {

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

extern "C" {
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    rmsnorm_float32(const float* x, const float* w, float* y, std::int64_t rows, int width, float eps) {
  rmsnorm(x, w, y, rows, width, eps);
}
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    rmsnorm_float16(const __half* x, const __half* w, __half* y, std::int64_t rows, int width, float eps) {
  rmsnorm(x, w, y, rows, width, eps);
}
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    rmsnorm_bfloat16(const __nv_bfloat16* x, const __nv_bfloat16* w, __nv_bfloat16* y, std::int64_t rows, int width,
                     float eps) {
  rmsnorm(x, w, y, rows, width, eps);
}
}

}  // namespace llmprof
