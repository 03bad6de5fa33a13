// Groups of rows, each times a matrix of its own, by tensor cores: y[row] = x[row] * w[group of row] transposed. Which
// rows are whose is read from the device's memory, so that a router's decision never visits the host: a table of tiles,
// each some rows of one group. Rows of x may be gathered through an index.

#include "bench/ops/grouped_gemm.cuh"

namespace llmprof {

#if __CUDA_ARCH__ >= 800
template <class T, int kRows, int kColumns, int kStages, int kWarpsM, int kWarpsN>
struct GroupedGemm {
  using Tile = GroupedTile<T, kRows, kColumns, 32 * kWarpsM * kWarpsN>;
  static constexpr int kWarpRows = kRows / kWarpsM, kWarpColumns = kColumns / kWarpsN;
  static constexpr int kTilesM = kWarpRows / 16, kTilesN = kWarpColumns / 8;
  static_assert(kTilesM >= 1 && kTilesN % 2 == 0, "a warp takes whole 16 x 16 pieces");

  struct Fragments {
    unsigned a[kTilesM][4], b[kTilesN / 2][4];
  };
  int first_row, first_column, lane;  // of this warp
  float sums[kTilesM][kTilesN][4];

  __device__ void load(Fragments& to, unsigned base, int step) const {
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
      load_matrices(to.a[i], base + tile_offset<128>(first_row + i * 16 + lane % 16, step * 2 + lane / 16));
    }
#pragma unroll
    for (int j = 0; j < kTilesN / 2; ++j) {
      const int row = first_column + j * 16 + lane % 8 + lane / 16 * 8;
      load_matrices(to.b[j], base + kRows * 128 + tile_offset<128>(row, step * 2 + lane / 8 % 2));
    }
  }

  // What the next step multiplies is loaded while this one does.
  __device__ void multiply_stage(unsigned base) {
    Fragments fragments[2];
    load(fragments[0], base, 0);
#pragma unroll
    for (int step = 0; step < kDepth / 16; ++step) {
      const Fragments& now = fragments[step % 2];
      if (step + 1 < kDepth / 16) load(fragments[(step + 1) % 2], base, step + 1);
#pragma unroll
      for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
        for (int j = 0; j < kTilesN; ++j) {
          const auto& a = now.a[i];
          multiply_add<T>(sums[i][j], a[0], a[1], a[2], a[3], now.b[j / 2][j % 2 * 2], now.b[j / 2][j % 2 * 2 + 1]);
        }
      }
    }
  }

  __device__ void run(const Tile& tile, T* y) {
    lane = threadIdx.x % 32;
    first_row = threadIdx.x / 32 % kWarpsM * kWarpRows;
    first_column = threadIdx.x / 32 / kWarpsM * kWarpColumns;
    for (auto& row : sums) {
      for (auto& piece : row) {
        for (float& sum : piece) sum = 0;
      }
    }
    const int steps = tile.steps();
    for (int stage = 0; stage < kStages - 1; ++stage) {
      if (stage < steps) tile.load_stage(stage, stage);
      commit_copies();
    }
    for (int step = 0; step < steps; ++step) {
      wait_copies<kStages - 2>();
      __syncthreads();  // also: everyone is done with the stage that is loaded next
      const int next = step + kStages - 1;
      if (next < steps) tile.load_stage(next % kStages, next);
      commit_copies();
      multiply_stage(tile.shared + step % kStages * Tile::kStageBytes);
    }
    for (int i = 0; i < kTilesM; ++i) {
      for (int j = 0; j < kTilesN; ++j) {
        const int row = first_row + i * 16 + lane / 4, column = first_column + j * 8 + lane % 4 * 2;
        tile.store(y, row, column, sums[i][j][0], sums[i][j][1]);
        tile.store(y, row + 8, column, sums[i][j][2], sums[i][j][3]);
      }
    }
  }
};
#endif

template <class T, int kRows, int kColumns, int kStages, int kWarpsM, int kWarpsN>
__device__ void grouped_gemm(const T* x, const T* w, T* y, const GroupedArguments& arguments) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ int sources[kRows];
  typename GroupedGemm<T, kRows, kColumns, kStages, kWarpsM, kWarpsN>::Tile tile;
  if (!tile.begin(x, w, arguments, sources, shared_address(memory))) return;
  GroupedGemm<T, kRows, kColumns, kStages, kWarpsM, kWarpsN> gemm;
  gemm.run(tile, y);
#endif
}

// For many rows a group, for some, and for few, where the weights are streamed once and little else matters; the last for
// few columns, too: more blocks, or some multiprocessors would have none.
extern "C" {
#define LLMPROF_GROUPED_GEMM(name, T)                                                                         \
  __global__ void __launch_bounds__(256, 1)                                                                   \
      grouped_gemm_128_##name(const T* x, const T* w, T* y, GroupedArguments arguments) {                     \
    grouped_gemm<T, 128, 128, 4, 2, 4>(x, w, y, arguments);                                                   \
  }                                                                                                           \
  __global__ void __launch_bounds__(256, 2)                                                                   \
      grouped_gemm_64_##name(const T* x, const T* w, T* y, GroupedArguments arguments) {                      \
    grouped_gemm<T, 64, 128, 4, 2, 4>(x, w, y, arguments);                                                    \
  }                                                                                                           \
  __global__ void __launch_bounds__(256, 2)                                                                   \
      grouped_gemm_16_##name(const T* x, const T* w, T* y, GroupedArguments arguments) {                      \
    grouped_gemm<T, 16, 128, 5, 1, 8>(x, w, y, arguments);                                                    \
  }                                                                                                           \
  __global__ void __launch_bounds__(128, 3)                                                                   \
      grouped_gemm_16_narrow_##name(const T* x, const T* w, T* y, GroupedArguments arguments) {               \
    grouped_gemm<T, 16, 64, 6, 1, 4>(x, w, y, arguments);                                                     \
  }
LLMPROF_GROUPED_GEMM(bfloat16, __nv_bfloat16)
LLMPROF_GROUPED_GEMM(float16, __half)
}

}  // namespace llmprof
