#pragma once
// Where measured times of products jump: neighbouring numbers of rows between which more rows take more time each.
// Tiles of a library, its choice of kernels and splits show here, whatever they are.

#include <cstdint>
#include <vector>

#include "predict/tables/step_cost.h"

namespace llmprof::predict {

struct RowJump {
  std::int64_t rows_below = 0, rows_above = 0;
  double ns_below = 0, ns_above = 0;  // of all products of a step that have a table
};

// By rows, ascending. Only sizes that all of the products were measured at count; none: no jumps, or no tables.
std::vector<RowJump> row_jumps(const TableStepCost& cost);

}  // namespace llmprof::predict
