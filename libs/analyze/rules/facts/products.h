#pragma once
// Matrix products with the kernels that executed them: tiles, launches, types.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/run.h"

namespace llmprof::analyze {

struct ProductKernel {  // all executions of one shape by one kernel in a stage
  std::string stage, type, compute_type, kernel;
  std::int64_t m = 0, n = 0, k = 0, batch = 1, executions = 0, time_ns = 0;
  std::int64_t blocks = 0, threads = 0, registers = 0, shared_bytes = 0;  // of a launch; 0 unknown

  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(batch) *
           static_cast<double>(executions);
  }
};

struct Tile {
  std::int64_t m = 0, n = 0;
};

Result<std::vector<ProductKernel>> product_kernels(const trace::Run& run);

// "nvjet_sm90_tst_192x192_64x4_…", "…_tilesize128x128x8_…", "ampere_sgemm_128x64_tn": the tile of the result that one
// block computes; nullopt if the name does not say.
std::optional<Tile> tile_of(std::string_view kernel);
bool splits_inner(std::string_view kernel);          // several blocks share one tile
bool without_tensor_cores(std::string_view kernel);  // the name says that it multiplies on plain cores

}  // namespace llmprof::analyze
