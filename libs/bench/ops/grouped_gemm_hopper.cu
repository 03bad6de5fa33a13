// Grouped products on Hopper, by its asynchronous tensor cores (wgmma): a group of four warps multiplies 64 rows straight
// from shared memory while all threads copy what comes next. The rest is as in grouped_gemm.cu.

#include "bench/cuda/wgmma.cuh"
#include "bench/ops/grouped_gemm.cuh"

namespace llmprof {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
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
      publish();
      __syncthreads();  // also: everyone's products of two steps before are done, so their stage may be loaded
      const unsigned base = tile.shared + step % kStages * Tile::kStageBytes;
      begin_products();
#pragma unroll
      for (int part = 0; part < kDepth / 16; ++part) {
        multiply(sums, matrix_at<16>(base + first_row * 128 + part * 32),
                 matrix_at<16>(base + (kRows + first_column) * 128 + part * 32), T{});
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
