// y = silu(gate) * up, where a row of the input holds gate, then up: one product of gate and up together wrote it so.

#include "bench/ops/activation.cuh"
#include "bench/ops/rows.cuh"

namespace llmprof {

template <int kUnroll, int kAccess, class T>
__device__ void silu_mul_part(const T* x, T* y, std::int64_t width, std::int64_t row, std::int64_t begin) {
  const T* gate = x + row * 2 * width + begin;
  stream_block<kUnroll, kAccess, 2, T>({gate, gate + width}, y + row * width + begin, width - begin,
                                       [](const float(&v)[2]) { return silu(v[0]) * v[1]; });
}

// A block computes one of the `parts` of a row, all of the same size.
template <class T>
__device__ void silu_mul(const T* x, T* y, std::int64_t width, int parts, int unroll) {
  constexpr int kPack = Pack<T>::kSize;
  const std::int64_t row = blockIdx.x / parts;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x % parts) * blockDim.x * kPack * unroll;
  if (width % kPack != 0) {
#pragma unroll 4
    for (int i = 0; i < kPack * unroll; ++i) {  // value by value what packs would cover
      silu_mul_part<1, 1>(x, y, width, row, begin + static_cast<std::int64_t>(i) * blockDim.x);
    }
  } else if (unroll == 1) {
    silu_mul_part<1, kPack>(x, y, width, row, begin);
  } else {
    silu_mul_part<4, kPack>(x, y, width, row, begin);
  }
}

extern "C" {
__global__ void silu_mul_float32(const float* x, float* y, std::int64_t width, int parts, int unroll) {
  silu_mul(x, y, width, parts, unroll);
}
__global__ void silu_mul_float16(const __half* x, __half* y, std::int64_t width, int parts, int unroll) {
  silu_mul(x, y, width, parts, unroll);
}
__global__ void silu_mul_bfloat16(const __nv_bfloat16* x, __nv_bfloat16* y, std::int64_t width, int parts, int unroll) {
  silu_mul(x, y, width, parts, unroll);
}
}

}  // namespace llmprof
