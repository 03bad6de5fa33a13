// Grouped products on Hopper, by its asynchronous tensor cores (wgmma): a group of four warps multiplies 64 rows straight
// from shared memory while all threads copy what comes next. The rest is as in grouped_gemm.cu.

#include "bench/ops/grouped_gemm.cuh"

namespace llmprof {

// wgmma is of sm_90a alone: other targets get kernels that do nothing, and are not launched.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// Rows of 128 bytes swizzled by 128, eight of them 1024 bytes from the next eight.
__device__ inline std::uint64_t matrix_descriptor(unsigned address) {
  return (static_cast<std::uint64_t>(1) << 62) | (static_cast<std::uint64_t>(1024 >> 4) << 32) |
         (static_cast<std::uint64_t>(1) << 16) | ((address & 0x3ffff) >> 4);
}
__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending>
__device__ inline void wait_products() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory"); }
// What ordinary copies wrote, the tensor cores may read.
__device__ inline void publish_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// 64 rows by `count` columns by 16 values of k, added to sums.
#define LLMPROF_SUMS_8(i) "+f"(s[i]), "+f"(s[i + 1]), "+f"(s[i + 2]), "+f"(s[i + 3]), "+f"(s[i + 4]), "+f"(s[i + 5]), \
    "+f"(s[i + 6]), "+f"(s[i + 7])
#define LLMPROF_SUMS_32(i) LLMPROF_SUMS_8(i), LLMPROF_SUMS_8(i + 8), LLMPROF_SUMS_8(i + 16), LLMPROF_SUMS_8(i + 24)
__device__ inline void multiply_add(float (&s)[128], std::uint64_t a, std::uint64_t b, __nv_bfloat16) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
      "}, %128, %129, 1, 1, 1, 0, 0;"
      : LLMPROF_SUMS_32(0), LLMPROF_SUMS_32(32), LLMPROF_SUMS_32(64), LLMPROF_SUMS_32(96)
      : "l"(a), "l"(b));
}
__device__ inline void multiply_add(float (&s)[128], std::uint64_t a, std::uint64_t b, __half) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
      "}, %128, %129, 1, 1, 1, 0, 0;"
      : LLMPROF_SUMS_32(0), LLMPROF_SUMS_32(32), LLMPROF_SUMS_32(64), LLMPROF_SUMS_32(96)
      : "l"(a), "l"(b));
}
__device__ inline void multiply_add(float (&s)[32], std::uint64_t a, std::uint64_t b, __nv_bfloat16) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, %32, %33, 1, 1, 1, 0, 0;"
      : LLMPROF_SUMS_32(0)
      : "l"(a), "l"(b));
}
__device__ inline void multiply_add(float (&s)[32], std::uint64_t a, std::uint64_t b, __half) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, %32, %33, 1, 1, 1, 0, 0;"
      : LLMPROF_SUMS_32(0)
      : "l"(a), "l"(b));
}

// Warps 0 to 3 and 4 to 7: each 64 rows, of which there are 128 (all columns for each), or 64 (half of the columns each).
template <class T, int kRows, int kColumns, int kStages>
struct GroupedWgmma {
  using Tile = GroupedTile<T, kRows, kColumns, 256>;
  static constexpr int kWidth = kRows == 128 ? kColumns : kColumns / 2;

  static __device__ void run(const Tile& tile, T* y) {
    const int half = threadIdx.x / 128;
    const int first_row = kRows == 128 ? half * 64 : 0, first_column = kRows == 128 ? 0 : half * kWidth;
    float sums[kWidth / 2];
    for (float& sum : sums) sum = 0;
    // One stage is multiplied, the one before may still be, the others are being copied.
    constexpr int kAhead = kStages - 2;
    const int steps = tile.steps();
    for (int stage = 0; stage < kAhead; ++stage) {
      if (stage < steps) tile.load_stage(stage, stage);
      commit_copies();
    }
    for (int step = 0; step < steps; ++step) {
      wait_copies<kAhead - 1>();
      publish_copies();
      __syncthreads();  // also: everyone's products of two steps before are done, so their stage may be loaded
      const unsigned base = tile.shared + step % kStages * Tile::kStageBytes;
      begin_products();
#pragma unroll
      for (int part = 0; part < kDepth / 16; ++part) {
        multiply_add(sums, matrix_descriptor(base + first_row * 128 + part * 32),
                     matrix_descriptor(base + (kRows + first_column) * 128 + part * 32), T{});
      }
      commit_products();
      const int next = step + kAhead;
      if (next < steps) tile.load_stage(next % kStages, next);
      commit_copies();
      wait_products<1>();
    }
    wait_products<0>();
    const int lane = threadIdx.x % 32, row = first_row + threadIdx.x % 128 / 32 * 16 + lane / 4;
#pragma unroll
    for (int j = 0; j < kWidth / 8; ++j) {
      const int column = first_column + j * 8 + lane % 4 * 2;
      tile.store(y, row, column, sums[j * 4], sums[j * 4 + 1]);
      tile.store(y, row + 8, column, sums[j * 4 + 2], sums[j * 4 + 3]);
    }
  }
};
#endif

template <class T, int kRows, int kColumns, int kStages>
__device__ void grouped_wgmma(const T* x, const T* w, T* y, const GroupedArguments& arguments) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ int sources[kRows];
  GroupedTile<T, kRows, kColumns, 256> tile;
  const unsigned aligned = (shared_address(memory) + 1023) / 1024 * 1024;
  if (!tile.begin(x, w, arguments, sources, aligned)) return;
  GroupedWgmma<T, kRows, kColumns, kStages>::run(tile, y);
#endif
}

extern "C" {
#define LLMPROF_GROUPED_WGMMA(name, T)                                                                                \
  __global__ void __launch_bounds__(256, 1)                                                                           \
      grouped_gemm_hopper_128_##name(const T* x, const T* w, T* y, GroupedArguments arguments) {                      \
    grouped_wgmma<T, 128, 256, 4>(x, w, y, arguments);                                                                \
  }                                                                                                                   \
  __global__ void __launch_bounds__(256, 2)                                                                           \
      grouped_gemm_hopper_64_##name(const T* x, const T* w, T* y, GroupedArguments arguments) {                       \
    grouped_wgmma<T, 64, 128, 4>(x, w, y, arguments);                                                                 \
  }
LLMPROF_GROUPED_WGMMA(bfloat16, __nv_bfloat16)
LLMPROF_GROUPED_WGMMA(float16, __half)
}

}  // namespace llmprof
