// y = x + residual. A thread adds one pack: both inputs in flight before the first use.

#include "bench/cuda/vector.cuh"

namespace llmprof {

template <class T>
__device__ void residual_add(const T* x, const T* residual, T* y, std::int64_t values) {
  constexpr int kPack = Pack<T>::kSize;
  // A block covers 8 * 256 values, whatever the type: wide types take several rounds.
  const std::int64_t block_begin = static_cast<std::int64_t>(blockIdx.x) * 8 * 256;
  for (int i = threadIdx.x * kPack; i < 8 * 256; i += 256 * kPack) {
    const std::int64_t at = block_begin + i;
    if (at + kPack <= values) {
      const Pack<T> a = load_pack(x + at), b = load_pack(residual + at);
      Pack<T> sum;
      for (int j = 0; j < kPack; ++j) sum.at[j] = from_float<T>(to_float(a.at[j]) + to_float(b.at[j]));
      store_pack(y + at, sum);
    } else {
      for (std::int64_t j = at; j < values; ++j) y[j] = from_float<T>(to_float(x[j]) + to_float(residual[j]));
    }
  }
}

extern "C" {
__global__ void residual_add_float32(const float* x, const float* r, float* y, std::int64_t n) {
  residual_add(x, r, y, n);
}
__global__ void residual_add_float16(const __half* x, const __half* r, __half* y, std::int64_t n) {
  residual_add(x, r, y, n);
}
__global__ void residual_add_bfloat16(const __nv_bfloat16* x, const __nv_bfloat16* r, __nv_bfloat16* y, std::int64_t n) {
  residual_add(x, r, y, n);
}
}

}  // namespace llmprof
