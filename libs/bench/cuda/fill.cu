// Random values, each computed from its place and the seed alone: the same on every GPU, whatever the launch.

#include "bench/cuda/vector.cuh"

namespace llmprof {

enum FillKind { kNormal, kUniform, kIndices };  // as cuda/fill.cpp numbers them

// The finaliser of splitmix64 over a Weyl sequence (Steele, Lea, Flood 2014): 64 good bits per place.
__device__ inline std::uint64_t draw(std::uint64_t key, std::uint64_t place) {
  std::uint64_t z = key + place * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

template <class T>
struct Store {
  using Real = float;
  __device__ static T real(float value) { return from_float<T>(value); }
};
template <>
struct Store<double> {
  using Real = double;
  __device__ static double real(double value) { return value; }
};
template <>
struct Store<std::int8_t> {
  using Real = float;
  __device__ static std::int8_t real(float value) {
    return static_cast<std::int8_t>(fminf(fmaxf(rintf(value), -128.0f), 127.0f));
  }
};
template <>
struct Store<std::int32_t> {
  using Real = double;
  __device__ static std::int32_t real(double value) { return __double2int_rn(value); }  // saturates
};

__device__ inline void normals(std::uint64_t bits, float& a, float& b) {
  const float u = (static_cast<float>(bits >> 40) + 1.0f) * 0x1p-24f;  // (0, 1]
  const float radius = sqrtf(-2.0f * __logf(u));
  __sincosf(6.2831853f * (static_cast<float>(static_cast<std::uint32_t>(bits)) * 0x1p-32f - 0.5f), &b, &a);
  a *= radius;
  b *= radius;
}
__device__ inline void normals(std::uint64_t bits, double& a, double& b) {
  const double radius = sqrt(-2.0 * log((static_cast<double>(bits >> 32) + 1.0) * 0x1p-32));
  sincospi(2.0 * (static_cast<double>(static_cast<std::uint32_t>(bits)) * 0x1p-32), &b, &a);
  a *= radius;
  b *= radius;
}

__device__ inline void uniforms(std::uint64_t bits, float& a, float& b) {  // 24 bits each: never 1
  a = static_cast<float>(bits >> 40) * 0x1p-24f;
  b = static_cast<float>(static_cast<std::uint32_t>(bits) >> 8) * 0x1p-24f;
}
__device__ inline void uniforms(std::uint64_t bits, double& a, double& b) {
  a = static_cast<double>(bits >> 32) * 0x1p-32;
  b = static_cast<double>(static_cast<std::uint32_t>(bits)) * 0x1p-32;
}

// Values 2 * pair and 2 * pair + 1.
template <class T>
__device__ void two_values(int kind, double scale, std::uint64_t limit, std::uint64_t key, std::uint64_t pair, T* out) {
  using Real = typename Store<T>::Real;
  if (kind == kIndices) {
    for (int j = 0; j < 2; ++j) {
      // The upper half of a product with the limit: no division, and no bias that could be seen.
      out[j] = Store<T>::real(static_cast<Real>(__umul64hi(draw(key, 2 * pair + j), limit)));
    }
    return;
  }
  Real a, b;
  if (kind == kNormal) {
    normals(draw(key, pair), a, b);
  } else {
    uniforms(draw(key, pair), a, b);
  }
  out[0] = Store<T>::real(static_cast<Real>(scale) * a);
  out[1] = Store<T>::real(static_cast<Real>(scale) * b);
}

template <class T>
__device__ void fill(T* to, std::int64_t elements, int kind, double scale, std::uint64_t limit, std::uint64_t key) {
  constexpr int kPack = Pack<T>::kSize;
  const std::int64_t packs = (elements + kPack - 1) / kPack;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const bool aligned = reinterpret_cast<std::uintptr_t>(to) % 16 == 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < packs; i += step) {
    Pack<T> pack;
    for (int j = 0; j < kPack; j += 2) two_values(kind, scale, limit, key, (i * kPack + j) / 2, pack.at + j);
    if (aligned && (i + 1) * kPack <= elements) {
      store_pack(to + i * kPack, pack);
    } else {
      for (int j = 0; j < kPack && i * kPack + j < elements; ++j) to[i * kPack + j] = pack.at[j];
    }
  }
}

#define LLMPROF_FILL(name, T)                                                                           \
  extern "C" __global__ void llmprof_fill_##name(T* to, std::int64_t elements, int kind, double scale, \
                                                 std::uint64_t limit, std::uint64_t key) {             \
    fill(to, elements, kind, scale, limit, key);                                                        \
  }
LLMPROF_FILL(float64, double)
LLMPROF_FILL(float32, float)
LLMPROF_FILL(float16, __half)
LLMPROF_FILL(bfloat16, __nv_bfloat16)
LLMPROF_FILL(float8_e4m3, __nv_fp8_e4m3)
LLMPROF_FILL(int8, std::int8_t)
LLMPROF_FILL(int32, std::int32_t)

}  // namespace llmprof
