#pragma once
// A product cut into tiles, and tiles into waves. Pure arithmetic.

#include <cmath>
#include <optional>
#include <string>

#include "analyze/rules/facts/subjects.h"

namespace llmprof::analyze {

struct Tiling {
  Tile tile;
  std::int64_t tiles = 0;  // of all products of one call
  std::int64_t slots = 0;  // tiles that execute at once
  double useful = 0;       // tiles' worth of the result

  std::int64_t waves() const { return (tiles + slots - 1) / slots; }
  double loss() const { return 1 - useful / static_cast<double>(waves() * slots); }
  double last_wave() const {  // how full it is
    const std::int64_t rest = tiles % slots;
    return rest == 0 ? 1 : static_cast<double>(rest) / static_cast<double>(slots);
  }
};

// nullopt where the kernel's name does not tell the tile, or several blocks share one.
std::optional<Tiling> tiling_of(const ProductKernel& product, std::int64_t units, std::int64_t blocks_per_unit);

struct Neighbour {
  std::string side;  // "m", "n"
  std::int64_t size = 0, was = 0, waves = 0;
};
// The size of one side, as little smaller as possible, that needs a wave less; at most an eighth smaller.
std::optional<Neighbour> cheaper_neighbour(const ProductKernel& product, const Tiling& tiling);

}  // namespace llmprof::analyze
