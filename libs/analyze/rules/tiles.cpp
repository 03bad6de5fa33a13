#include "analyze/rules/tiles.h"

#include <algorithm>

namespace llmprof::analyze {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t count_tiles(std::int64_t m, std::int64_t n, std::int64_t batch, Tile tile) {
  return ceil_div(m, tile.m) * ceil_div(n, tile.n) * batch;
}

}  // namespace

std::optional<Tiling> tiling_of(const ProductKernel& product, std::int64_t units, std::int64_t blocks_per_unit) {
  std::optional<Tile> tile = tile_of(product.kernel);
  if (!tile || units <= 0 || splits_inner(product.kernel)) return std::nullopt;
  // Some libraries name rows first, some columns: the number of blocks tells, where it is one block per tile.
  const Tile turned{tile->n, tile->m};
  const bool fits = count_tiles(product.m, product.n, product.batch, *tile) == product.blocks;
  const bool turned_fits = count_tiles(product.m, product.n, product.batch, turned) == product.blocks;
  if (!fits && turned_fits) tile = turned;
  Tiling out{.tile = *tile, .tiles = count_tiles(product.m, product.n, product.batch, *tile)};
  if (product.blocks > out.tiles) return std::nullopt;  // several blocks for each tile
  // Fewer blocks than tiles: blocks that stay and take one tile after another.
  out.slots = product.blocks > 0 && product.blocks < out.tiles ? product.blocks : units * blocks_per_unit;
  out.useful = static_cast<double>(product.m) * static_cast<double>(product.n) * static_cast<double>(product.batch) /
               static_cast<double>(tile->m * tile->n);
  return out;
}

std::optional<Neighbour> cheaper_neighbour(const ProductKernel& product, const Tiling& tiling) {
  std::optional<Neighbour> best;
  double best_cut = 1.0 / 8;
  for (const bool rows : {true, false}) {
    const std::int64_t size = rows ? product.m : product.n, step = rows ? tiling.tile.m : tiling.tile.n;
    for (std::int64_t smaller = (size - 1) / step * step; smaller > 0; smaller -= step) {
      const double cut = 1 - static_cast<double>(smaller) / static_cast<double>(size);
      if (cut > best_cut) break;
      const std::int64_t tiles = rows ? count_tiles(smaller, product.n, product.batch, tiling.tile)
                                      : count_tiles(product.m, smaller, product.batch, tiling.tile);
      const std::int64_t waves = ceil_div(tiles, tiling.slots);
      if (waves >= tiling.waves()) continue;
      best = Neighbour{rows ? "m" : "n", smaller, size, waves};
      best_cut = cut;
      break;
    }
  }
  return best;
}

}  // namespace llmprof::analyze
