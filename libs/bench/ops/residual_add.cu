// y = x + residual, value by value.

#include "bench/ops/rows.cuh"

namespace llmprof {

template <class T>
__device__ void residual_add(const T* x, const T* residual, T* y, std::int64_t values) {
  stream<2, T>({x, residual}, y, values, [](const float(&v)[2]) { return v[0] + v[1]; });
}

extern "C" {
__global__ void residual_add_float32(const float* x, const float* r, float* y, std::int64_t n) {
  residual_add(x, r, y, n);
}
__global__ void residual_add_float16(const __half* x, const __half* r, __half* y, std::int64_t n) {
  residual_add(x, r, y, n);
}
__global__ void residual_add_bfloat16(const __nv_bfloat16* x, const __nv_bfloat16* r, __nv_bfloat16* y,
                                      std::int64_t n) {
  residual_add(x, r, y, n);
}
}

}  // namespace llmprof
