// y = gelu(x), value by value, exact and by tanh.

#include "bench/ops/activation.cuh"
#include "bench/ops/rows.cuh"

namespace llmprof {

template <class T>
__device__ void gelu_values(const T* x, T* y, std::int64_t values) {
  stream<1, T>({x}, y, values, [](const float(&v)[1]) { return gelu(v[0]); });
}
template <class T>
__device__ void gelu_tanh_values(const T* x, T* y, std::int64_t values) {
  stream<1, T>({x}, y, values, [](const float(&v)[1]) { return gelu_tanh(v[0]); });
}

extern "C" {
__global__ void gelu_float32(const float* x, float* y, std::int64_t n) { gelu_values(x, y, n); }
__global__ void gelu_float16(const __half* x, __half* y, std::int64_t n) { gelu_values(x, y, n); }
__global__ void gelu_bfloat16(const __nv_bfloat16* x, __nv_bfloat16* y, std::int64_t n) { gelu_values(x, y, n); }
__global__ void gelu_tanh_float32(const float* x, float* y, std::int64_t n) { gelu_tanh_values(x, y, n); }
__global__ void gelu_tanh_float16(const __half* x, __half* y, std::int64_t n) { gelu_tanh_values(x, y, n); }
__global__ void gelu_tanh_bfloat16(const __nv_bfloat16* x, __nv_bfloat16* y, std::int64_t n) {
  gelu_tanh_values(x, y, n);
}
}

}  // namespace llmprof
