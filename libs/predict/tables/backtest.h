#pragma once
// How wrong tables are between and beyond their points: each point is predicted from its neighbours along one axis.

#include <optional>
#include <string>
#include <vector>

#include "predict/tables/step_cost.h"

namespace llmprof::predict {

struct OperatorError {
  std::string op;
  std::string axis;            // along which the point was left out; its neighbours are then twice as far as when used
  bool beyond = false;         // it was the first or the last: predicted by extrapolation
  std::int64_t points = 0;     // predicted
  double median = 0, p90 = 0;  // of |predicted / measured - 1|
  double bias = 0;             // mean of predicted / measured - 1
};

// The way times are blended; kChosen is the one each operator has.
enum class BlendTried : std::uint8_t { kChosen, kLinearTime, kUtilisation, kOverhead };

// In the order of a step; operators without a table have no rows.
std::vector<OperatorError> backtest_operators(const TableStepCost& cost, BlendTried tried = BlendTried::kChosen);

}  // namespace llmprof::predict
