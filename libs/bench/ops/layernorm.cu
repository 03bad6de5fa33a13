// y = (x - mean) / √(variance + eps) · weight + bias, row by row.

#include "bench/ops/norm.cuh"

namespace llmprof {

template <class T>
__device__ void layernorm(const T* x, const T* w, const T* b, T* y, std::int64_t rows, int width, float eps) {
  layernorm_rows(x, w, b, y, rows, width, eps, [](float value) { return value; });
}

extern "C" {
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    layernorm_float32(const float* x, const float* w, const float* b, float* y, std::int64_t rows, int width,
                      float eps) {
  layernorm(x, w, b, y, rows, width, eps);
}
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    layernorm_float16(const __half* x, const __half* w, const __half* b, __half* y, std::int64_t rows, int width,
                      float eps) {
  layernorm(x, w, b, y, rows, width, eps);
}
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    layernorm_bfloat16(const __nv_bfloat16* x, const __nv_bfloat16* w, const __nv_bfloat16* b, __nv_bfloat16* y,
                       std::int64_t rows, int width, float eps) {
  layernorm(x, w, b, y, rows, width, eps);
}
}

}  // namespace llmprof
