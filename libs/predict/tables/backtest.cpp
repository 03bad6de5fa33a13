#include "predict/tables/backtest.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace llmprof::predict {
namespace {

double quantile(const std::vector<double>& sorted, double p) {
  const double rank = std::ceil(p * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
}

std::string axis_name(const Part& part, std::size_t axis) {
  switch (part.rows) {
    case PartRows::kTokens:
      return "tokens";
    case PartRows::kSampled:
      return "sequences";
    case PartRows::kExperts:
      return std::string(find_table_kind("moe")->axes[axis]);
    case PartRows::kAttention:
      break;
  }
  return std::string(find_table_kind("attention")->axes[axis]);
}

// `row` has its name already.
void add_errors(OperatorError row, const std::vector<double>& errors, std::vector<OperatorError>& rows) {
  if (errors.empty()) return;
  std::vector<double> sizes;
  for (const double error : errors) {
    sizes.push_back(std::fabs(error));
    row.bias += error / static_cast<double>(errors.size());
  }
  std::ranges::sort(sizes);
  row.points = static_cast<std::int64_t>(errors.size());
  row.median = quantile(sizes, 0.5);
  row.p90 = quantile(sizes, 0.9);
  rows.push_back(std::move(row));
}

void leave_out(const Grid& grid, const Part& part, std::size_t axis, std::vector<OperatorError>& rows) {
  std::vector<double> between, beyond;
  for (const Grid::Point& point : grid.all()) {
    if (point.at[axis] == 0) continue;  // no prompt, no context: a case of its own, not the end of an axis
    const auto answer = grid.ask_without(std::span(point.at).first(grid.axes()), axis);
    if (!answer || !(point.ns > 0)) continue;
    (answer->basis == Basis::kExtrapolated ? beyond : between).push_back(answer->ns / point.ns - 1);
  }
  add_errors({.op = part.name, .axis = axis_name(part, axis)}, between, rows);
  add_errors({.op = part.name, .axis = axis_name(part, axis), .beyond = true}, beyond, rows);
}

Grid blended(const TableStepCost::Entry& entry, BlendTried tried) {
  Grid grid = *entry.grid;
  if (tried == BlendTried::kChosen) return grid;
  grid.set_blend(tried == BlendTried::kUtilisation ? Blend::kUtilisation : Blend::kOverhead);
  grid.settle(tried == BlendTried::kLinearTime ? nullptr : entry.floor.get());
  return grid;
}

}  // namespace

std::vector<OperatorError> backtest_operators(const TableStepCost& cost, BlendTried tried) {
  std::vector<OperatorError> rows;
  std::set<std::string> done;
  for (const auto& entry : cost.entries()) {
    if (!entry->grid || !entry->floor || !done.insert(entry->part.name).second) continue;
    const Grid grid = blended(*entry, tried);
    for (std::size_t axis = 0; axis < grid.axes(); ++axis) leave_out(grid, entry->part, axis, rows);
  }
  return rows;
}

}  // namespace llmprof::predict
