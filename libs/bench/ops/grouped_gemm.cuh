#pragma once
// What the kernels of grouped products share: the table of tiles, and the copies of a stage into shared memory.
// A stage holds 64 values of k of each row of x and of w. Rows are of 128 bytes, their 16-byte chunks swizzled: neither
// the copies nor the reads meet in one bank, and it is the layout that wgmma knows as swizzled by 128 bytes.

#include "bench/cuda/tensor_cores.cuh"
#include "bench/cuda/vector.cuh"

namespace llmprof {

struct GroupTile {
  int group, begin, end, unused;  // rows [begin, end)
};

constexpr int kDepth = 64;  // values of k in a stage
constexpr int kBand = 8;    // tiles of rows that are computed side by side, so that they share what they read of w

struct GroupedArguments {
  const GroupTile* tiles;
  const int* tile_count;
  const int* gather;  // row of x for each row, or none: the row itself
  std::int64_t n, k;
};

#if __CUDA_ARCH__ >= 800
// What one block of kThreads computes: kRows rows of a group by kColumns columns.
template <class T, int kRows, int kColumns, int kThreads>
struct GroupedTile {
  static_assert(kRows <= kThreads, "a thread looks up at most one row");
  static constexpr int kStageBytes = (kRows + kColumns) * 128;
  const T *x, *w;
  const int* sources;  // row of x for each row of the tile, in shared memory; -1 past its end
  GroupTile tile;
  std::int64_t n, k, first_column;
  unsigned shared;

  // False: there is no such tile. Blocks: kBand tiles of rows beside each other, for one tile of columns after the other.
  __device__ bool begin(const T* x_at, const T* w_at, const GroupedArguments& arguments, int* source_rows,
                        unsigned memory) {
    n = arguments.n;
    k = arguments.k;
    const std::int64_t column_tiles = (n + kColumns - 1) / kColumns, per_band = kBand * column_tiles;
    const std::int64_t slot = blockIdx.x / per_band * kBand + blockIdx.x % per_band % kBand;
    if (slot >= *arguments.tile_count) return false;
    x = x_at;
    tile = arguments.tiles[slot];
    first_column = blockIdx.x % per_band / kBand * kColumns;
    w = w_at + (static_cast<std::int64_t>(tile.group) * n + first_column) * k;
    sources = source_rows;
    shared = memory;
    if (threadIdx.x < kRows) {
      const int row = tile.begin + static_cast<int>(threadIdx.x);
      source_rows[threadIdx.x] = row >= tile.end ? -1 : arguments.gather != nullptr ? arguments.gather[row] : row;
    }
    __syncthreads();
    return true;
  }

  __device__ int steps() const { return static_cast<int>((k + kDepth - 1) / kDepth); }

  // Rows past the tile's end, columns past n and values past k are zeros: nothing is read there.
  __device__ void load_stage(int stage, int step) const {
    const unsigned base = shared + stage * kStageBytes;
    const int chunk = threadIdx.x % 8;
    const std::int64_t at = static_cast<std::int64_t>(step) * kDepth + chunk * 8;
    constexpr int kPass = kThreads / 8;
#pragma unroll
    for (int row = threadIdx.x / 8; row < kRows; row += kPass) {
      const int source = sources[row];
      const bool real = source >= 0 && at < k;
      copy_async(base + tile_offset<128>(row, chunk), real ? x + source * k + at : x, real);
    }
#pragma unroll
    for (int row = threadIdx.x / 8; row < kColumns; row += kPass) {
      const bool real = first_column + row < n && at < k;
      copy_async(base + kRows * 128 + tile_offset<128>(row, chunk), real ? w + row * k + at : w, real);
    }
  }

  // Two neighbouring results; n is even, so both exist or neither.
  __device__ void store(T* y, int row, int column, float first, float second) const {
    const std::int64_t to_row = tile.begin + row, to_column = first_column + column;
    if (to_row >= tile.end || to_column >= n) return;
    struct alignas(4) Two {
      T first, second;
    };
    *reinterpret_cast<Two*>(y + to_row * n + to_column) = {from_float<T>(first), from_float<T>(second)};
  }
};
#endif

}  // namespace llmprof
