// Groups of rows, each times a matrix of its own, by tensor cores: y[row] = x[row] * w[group of row] transposed. Which
// rows are whose is read from the device's memory, so that a router's decision never visits the host: a table of tiles,
// each some rows of one group. Rows of x may be gathered through an index.
// Asynchronous copies fill a ring of stages in shared memory, rows of 128 bytes whose 16-byte chunks are swizzled, so
// that neither the copies nor ldmatrix meet in one bank.

#include "bench/cuda/vector.cuh"

namespace llmprof {

struct GroupTile {
  int group, begin, end, unused;  // rows [begin, end), at most kRows of them
};

#if __CUDA_ARCH__ >= 800
__device__ inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}
// 16 bytes, or zeros instead.
__device__ inline void copy_async(unsigned to, const void* from, bool real) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(real ? 16 : 0));
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;"); }
template <int kPending>
__device__ inline void wait_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(kPending)); }
__device__ inline void load_matrices(unsigned (&to)[4], unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(from));
}
__device__ inline void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, __nv_bfloat16) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ inline void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, __half) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Bytes from the start of a tile of rows of 64 values to a 16-byte chunk of it.
__device__ inline unsigned chunk_offset(int row, int chunk) { return row * 128 + ((chunk ^ (row & 7)) * 16); }

constexpr int kDepth = 64;      // values of k in a stage
constexpr int kThreads = 256;   // 8 warps
constexpr int kBand = 8;        // tiles of rows that are computed side by side, so that they share what they read of w

template <class T, int kRows, int kColumns, int kStages, int kWarpsM>
struct GroupedGemm {
  static constexpr int kWarpsN = 8 / kWarpsM;
  static constexpr int kWarpRows = kRows / kWarpsM, kWarpColumns = kColumns / kWarpsN;
  static constexpr int kTilesM = kWarpRows / 16, kTilesN = kWarpColumns / 8;
  static constexpr int kStageBytes = (kRows + kColumns) * 128;
  static_assert(kTilesM >= 1 && kTilesN % 2 == 0, "a warp takes whole 16 x 16 pieces");

  const T *x, *w;
  const int* sources;  // row of x for each row of the tile, in shared memory; -1 past its end
  GroupTile tile;
  std::int64_t n, k;
  std::int64_t first_column;
  unsigned shared;
  int thread, warp_m, warp_n, lane;
  float sums[kTilesM][kTilesN][4];

  // Rows past the tile's end and columns past n are zeros: nothing is read there.
  __device__ void load_stage(int stage, std::int64_t depth) {
    const unsigned base = shared + stage * kStageBytes;
    const int chunk = thread % 8;
    const std::int64_t at = depth + chunk * 8;
    constexpr int kPass = kThreads / 8;
#pragma unroll
    for (int row = thread / 8; row < kRows; row += kPass) {
      const int source = sources[row];
      const bool real = source >= 0 && at < k;
      copy_async(base + chunk_offset(row, chunk), real ? x + source * k + at : x, real);
    }
#pragma unroll
    for (int row = thread / 8; row < kColumns; row += kPass) {
      const bool real = first_column + row < n && at < k;
      const T* const from = w + (static_cast<std::int64_t>(tile.group) * n + first_column + row) * k + at;
      copy_async(base + kRows * 128 + chunk_offset(row, chunk), real ? from : w, real);
    }
  }

  __device__ void multiply_stage(int stage) {
    const unsigned a_base = shared + stage * kStageBytes, b_base = a_base + kRows * 128;
#pragma unroll
    for (int step = 0; step < kDepth / 16; ++step) {
      unsigned a[kTilesM][4], b[kTilesN / 2][4];
#pragma unroll
      for (int i = 0; i < kTilesM; ++i) {
        const int row = warp_m * kWarpRows + i * 16 + lane % 16;
        load_matrices(a[i], a_base + chunk_offset(row, step * 2 + lane / 16));
      }
#pragma unroll
      for (int j = 0; j < kTilesN / 2; ++j) {
        const int row = warp_n * kWarpColumns + j * 16 + lane % 8 + (lane / 16) * 8;
        load_matrices(b[j], b_base + chunk_offset(row, step * 2 + (lane / 8) % 2));
      }
#pragma unroll
      for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
        for (int j = 0; j < kTilesN; ++j) multiply_add(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1], T{});
      }
    }
  }

  __device__ void store(T* y) const {
    for (int i = 0; i < kTilesM; ++i) {
      for (int half = 0; half < 2; ++half) {
        const int row = tile.begin + warp_m * kWarpRows + i * 16 + lane / 4 + half * 8;
        if (row >= tile.end) continue;
        T* const to = y + row * n;
        for (int j = 0; j < kTilesN; ++j) {
          const std::int64_t column = first_column + warp_n * kWarpColumns + j * 8 + lane % 4 * 2;
          if (column >= n) continue;  // n is even: both or neither
          struct alignas(4) { T first, second; } pair{from_float<T>(sums[i][j][half * 2]),
                                                      from_float<T>(sums[i][j][half * 2 + 1])};
          *reinterpret_cast<decltype(pair)*>(to + column) = pair;
        }
      }
    }
  }

  __device__ void run(T* y) {
    for (auto& row : sums) for (auto& piece : row) for (float& sum : piece) sum = 0;
    const int steps = static_cast<int>((k + kDepth - 1) / kDepth);
    for (int stage = 0; stage < kStages - 1; ++stage) {
      if (stage < steps) load_stage(stage, static_cast<std::int64_t>(stage) * kDepth);
      commit_copies();
    }
    for (int step = 0; step < steps; ++step) {
      wait_copies<kStages - 2>();
      __syncthreads();
      const int next = step + kStages - 1;
      if (next < steps) load_stage(next % kStages, static_cast<std::int64_t>(next) * kDepth);
      commit_copies();
      multiply_stage(step % kStages);
    }
    store(y);
  }
};
#endif

// Blocks: kBand tiles of rows beside each other, for one tile of columns after the other. `slots` tiles at most.
template <class T, int kRows, int kColumns, int kStages, int kWarpsM>
__device__ void grouped_gemm(const T* x, const T* w, T* y, const GroupTile* tiles, const int* tile_count,
                             const int* gather, std::int64_t n, std::int64_t k) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ int sources[kRows];
  const std::int64_t column_tiles = (n + kColumns - 1) / kColumns, per_band = kBand * column_tiles;
  const std::int64_t slot = blockIdx.x / per_band * kBand + blockIdx.x % per_band % kBand;
  if (slot >= *tile_count) return;
  GroupedGemm<T, kRows, kColumns, kStages, kWarpsM> gemm;
  gemm.x = x;
  gemm.w = w;
  gemm.sources = sources;
  gemm.tile = tiles[slot];
  gemm.n = n;
  gemm.k = k;
  gemm.first_column = blockIdx.x % per_band / kBand * kColumns;
  gemm.shared = shared_address(memory);
  gemm.thread = threadIdx.x;
  gemm.lane = threadIdx.x % 32;
  gemm.warp_m = threadIdx.x / 32 % kWarpsM;
  gemm.warp_n = threadIdx.x / 32 / kWarpsM;
  if (threadIdx.x < kRows) {
    const int row = gemm.tile.begin + static_cast<int>(threadIdx.x);
    sources[threadIdx.x] = row >= gemm.tile.end ? -1 : gather != nullptr ? gather[row] : row;
  }
  __syncthreads();
  gemm.run(y);
#endif
}

// For many rows a group, for some, and for few: there the weights are streamed once, and little else matters.
#define LLMPROF_GROUPED_GEMM(name, T)                                                                               \
  __global__ void __launch_bounds__(256, 1)                                                                         \
  grouped_gemm_128_##name(const T* x, const T* w, T* y, const GroupTile* tiles, const int* count, const int* gather, \
                          std::int64_t n, std::int64_t k) {                                                         \
    grouped_gemm<T, 128, 256, 4, 2>(x, w, y, tiles, count, gather, n, k);                                           \
  }                                                                                                                 \
  __global__ void __launch_bounds__(256, 2)                                                                         \
  grouped_gemm_64_##name(const T* x, const T* w, T* y, const GroupTile* tiles, const int* count, const int* gather,  \
                         std::int64_t n, std::int64_t k) {                                                          \
    grouped_gemm<T, 64, 128, 4, 2>(x, w, y, tiles, count, gather, n, k);                                            \
  }                                                                                                                 \
  __global__ void __launch_bounds__(256, 2)                                                                         \
  grouped_gemm_16_##name(const T* x, const T* w, T* y, const GroupTile* tiles, const int* count, const int* gather,  \
                         std::int64_t n, std::int64_t k) {                                                          \
    grouped_gemm<T, 16, 128, 5, 1>(x, w, y, tiles, count, gather, n, k);                                            \
  }

extern "C" {
LLMPROF_GROUPED_GEMM(bfloat16, __nv_bfloat16)
LLMPROF_GROUPED_GEMM(float16, __half)
}

}  // namespace llmprof
