#include "predict/tables/jumps.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace llmprof::predict {
namespace {

// A time that grows less than this is noise of the measurement.
constexpr double kLeastJump = 1.05;

}  // namespace

std::vector<RowJump> row_jumps(const TableStepCost& cost) {
  struct Sum {
    double ns = 0;
    std::size_t products = 0;
  };
  std::map<std::int64_t, Sum> by_rows;
  std::size_t products = 0;
  for (const auto& entry : cost.entries()) {
    const Part& part = entry->part;
    if (!entry->grid || part.rows != PartRows::kTokens || part.ops.empty() || part.ops.front().multiply_adds == 0)
      continue;
    ++products;
    for (const Grid::Point& point : entry->grid->all()) {
      Sum& sum = by_rows[std::llround(point.at[0])];
      sum.ns += point.ns * static_cast<double>(part.calls);
      ++sum.products;
    }
  }
  std::erase_if(by_rows, [&](const auto& each) { return each.second.products != products; });
  std::vector<RowJump> jumps;
  if (by_rows.size() < 2) return jumps;
  for (auto below = by_rows.begin(), above = std::next(below); above != by_rows.end(); ++below, ++above) {
    const double time = above->second.ns / below->second.ns;
    const double rows =
        static_cast<double>(above->first) / static_cast<double>(std::max<std::int64_t>(1, below->first));
    if (time > std::max(kLeastJump, rows))
      jumps.push_back({below->first, above->first, below->second.ns, above->second.ns});
  }
  return jumps;
}

}  // namespace llmprof::predict
