#pragma once
// Hopper's asynchronous tensor cores (wgmma), which multiply matrices straight from shared memory. They are of sm_90a
// alone: other targets get kernels that do nothing, and are not launched.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace llmprof {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending>
__device__ inline void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// What ordinary instructions and copies wrote, the tensor cores may read.
__device__ inline void publish() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Rows of 128 bytes swizzled by 128, eight of them 1024 bytes from the next eight; the next 64 columns kBlockBytes
// further.
template <int kBlockBytes>
__device__ inline std::uint64_t matrix_at(std::uint32_t address) {
  return (std::uint64_t{1} << 62) | (std::uint64_t{1024 >> 4} << 32) | (std::uint64_t{kBlockBytes >> 4} << 16) |
         ((address & 0x3ffff) >> 4);
}

#define LLMPROF_SUMS_8(i) \
  "+f"(s[i]), "+f"(s[i + 1]), "+f"(s[i + 2]), "+f"(s[i + 3]), "+f"(s[i + 4]), "+f"(s[i + 5]), "+f"(s[i + 6]), "+f"(s[i + 7])
#define LLMPROF_SUMS_32(i) LLMPROF_SUMS_8(i), LLMPROF_SUMS_8(i + 8), LLMPROF_SUMS_8(i + 16), LLMPROF_SUMS_8(i + 24)
#define LLMPROF_NAMES_32                                                   \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LLMPROF_NAMES_128                                                                        \
  LLMPROF_NAMES_32 ", "                                                                          \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "             \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "             \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "             \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "             \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

// multiply: s (64 x 64 or 64 x 256) += a (64 x 16) · b transposed. multiply_plain: s (64 x 256) += a (64 x 16) · b (16 x 256).
#define LLMPROF_WGMMA(T, type)                                                                               \
  __device__ inline void multiply(float (&s)[32], std::uint64_t a, std::uint64_t b, T) {                     \
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" LLMPROF_NAMES_32           \
                 "}, %32, %33, 1, 1, 1, 0, 0;"                                                               \
                 : LLMPROF_SUMS_32(0)                                                                        \
                 : "l"(a), "l"(b));                                                                          \
  }                                                                                                          \
  LLMPROF_WGMMA_256(multiply, T, type, "0") LLMPROF_WGMMA_256(multiply_plain, T, type, "1")
#define LLMPROF_WGMMA_256(name, T, type, plain)                                                              \
  __device__ inline void name(float (&s)[128], std::uint64_t a, std::uint64_t b, T) {                        \
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type " {" LLMPROF_NAMES_128         \
                 "}, %128, %129, 1, 1, 1, 0, " plain ";"                                                     \
                 : LLMPROF_SUMS_32(0), LLMPROF_SUMS_32(32), LLMPROF_SUMS_32(64), LLMPROF_SUMS_32(96)         \
                 : "l"(a), "l"(b));                                                                          \
  }
LLMPROF_WGMMA(__nv_bfloat16, "bf16")
LLMPROF_WGMMA(__half, "f16")

#endif

}  // namespace llmprof
