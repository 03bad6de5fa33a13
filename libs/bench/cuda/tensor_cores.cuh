#pragma once
// What the kernels of attention and of grouped products share: products of tensor cores of 16x8x16, loads into their fragments, and copies from
// global to shared memory that run beside the arithmetic. For compute capability 8.0 and later; empty before.
//
// Fragments, with row = lane / 4 and column = lane % 4: A (16x16) holds rows row and row + 8, B (16x8) and C (16x8)
// column row and columns 2·column, 2·column + 1.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace llmprof {

template <class T>
__device__ inline std::uint32_t pack_pair(float low, float high);
template <>
__device__ inline std::uint32_t pack_pair<__half>(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}
template <>
__device__ inline std::uint32_t pack_pair<__nv_bfloat16>(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

// c += a · b
template <class T>
__device__ inline void multiply_add(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2, std::uint32_t a3,
                                    std::uint32_t b0, std::uint32_t b1);
template <>
__device__ inline void multiply_add<__nv_bfloat16>(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                                   std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#endif
}
template <>
__device__ inline void multiply_add<__half>(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                            std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#endif
}

// Four 8x8 matrices; lane i gives the address of row i % 8 of matrix i / 8.
__device__ inline void load_matrices(std::uint32_t (&r)[4], std::uint32_t shared_address) {
#if __CUDA_ARCH__ >= 800
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address)
               : "memory");
#endif
}
__device__ inline void load_matrices_transposed(std::uint32_t (&r)[4], std::uint32_t shared_address) {
#if __CUDA_ARCH__ >= 800
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address)
               : "memory");
#endif
}
// An 8x8 matrix that lies across the lanes of a warp.
__device__ inline std::uint32_t transpose_matrix(std::uint32_t from) {
  std::uint32_t to = 0;
#if __CUDA_ARCH__ >= 800
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(to) : "r"(from));
#endif
  return to;
}

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// 16 bytes to shared memory, in the background; zeros if not `valid`.
__device__ inline void copy_async(std::uint32_t to, const void* from, bool valid) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
#endif
}
__device__ inline void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int kLeft>  // groups that may still be on their way
__device__ inline void wait_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
#endif
}

// 16 bytes that are read once: past the first-level cache.
__device__ inline uint4 load_once(const void* from) {
  uint4 value;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(from));
  return value;
}

// Byte offset of 16-byte piece `piece` of row `row` in a tile of rows of `kRowBytes`: pieces are swapped so that eight
// rows of one column lie in different banks.
template <int kRowBytes>
__device__ inline std::uint32_t tile_offset(int row, int piece) {
  return static_cast<std::uint32_t>(row * kRowBytes + ((piece ^ (row & 7)) * 16));
}

__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

inline constexpr float kLog2E = 1.4426950408889634f;

}  // namespace llmprof
