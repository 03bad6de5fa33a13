#pragma once
// The kernels of ops/grouped_gemm.cu from the host's side: which of them, how many blocks, and the table of tiles that
// says whose rows are whose.

#include <cstdint>
#include <string>
#include <vector>

#include "bench/cuda/context.h"
#include "bench/type.h"

namespace llmprof::bench {

struct GroupTile {
  std::int32_t group = 0, begin = 0, end = 0, unused = 0;
};

struct GroupedKernel {
  std::string name;        // "grouped_gemm_64_bfloat16"
  std::int64_t tile_rows;  // at most, of one tile
  std::int64_t tiles;      // at most, of all groups together
  std::int64_t k, n;
  cuda::Launch launch;

  // tiles: of GroupTile, count: how many there are, gather: row of x for each row, or 0.
  Result<void> enqueue(cuda::Context& context, cuda::Pointer x, cuda::Pointer w, cuda::Pointer y,
                       cuda::Pointer tiles_at, cuda::Pointer count_at, cuda::Pointer gather) const;
};

Result<GroupedKernel> choose_grouped_kernel(const cuda::Context& context, Type type, std::int64_t rows,
                                            std::int64_t groups, std::int64_t n, std::int64_t k);

// The table for groups whose sizes the host knows.
std::vector<GroupTile> tiles_of(const std::vector<std::int64_t>& rows, std::int64_t tile_rows);

}  // namespace llmprof::bench
