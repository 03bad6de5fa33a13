#pragma once
// Where a little more costs a lot, or nothing: memory, the engine's limits and graph sizes, tiles and waves of
// products, steps in measured times. For each: where the design is, where the cliff lies, what it costs, the next
// better size.

#include <optional>
#include <string>
#include <vector>

#include "analyze/design/whatif.h"

namespace llmprof::analyze::design {

// Neighbouring sizes of an operator table between which more rows take more time each.
struct TimeJump {
  std::int64_t rows_below = 0, rows_above = 0;
  double ns_below = 0, ns_above = 0;  // of all products of a step
};

// What is known beside the design. Nothing of it has to be.
struct CliffFacts {
  std::int64_t units = 0;  // SMs of a GPU; 0: not known, or no GPU
  // The engine's rules.
  std::string engine;  // "vllm 0.19"; "" none
  std::int64_t max_num_seqs = 0, max_num_batched_tokens = 0;
  std::vector<std::int64_t> capture_sizes;       // of CUDA graphs
  std::int64_t kv_blocks = 0, block_tokens = 0;  // by the engine's rule; 0: not known
  std::vector<TimeJump> jumps;                   // by rows; empty: products were not measured
};

struct Cliff {
  std::string what;    // "CUDA graphs"
  std::string here;    // "batch 33 runs as 40"
  std::string where;   // "graphs have 32, 40, 48 … 512 rows"
  std::string cost;    // "7 of 40 rows are padding"
  std::string better;  // "batch=40", as --set takes it; "" none
};

// `pricer` says what the next size would cost.
std::vector<Cliff> cliffs(const ModelSetup& setup, const Design& design, const CliffFacts& facts,
                          const Pricer& pricer = price_at_floor);

// Output tiles of a product over the units of a GPU, one tile on each at a time.
struct Waves {
  double tiles = 0, waves = 0;
  double used = 0;  // of the units' places in whole waves and the rows and columns in whole tiles: 0 to 1
};
inline constexpr std::int64_t kTile = 128;  // assumed: libraries choose tiles by size, and do not say which
Waves waves_of(std::int64_t rows, std::int64_t columns, std::int64_t units, std::int64_t tile = kTile);

}  // namespace llmprof::analyze::design
