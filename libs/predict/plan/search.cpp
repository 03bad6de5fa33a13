#include "predict/plan/search.h"

#include <algorithm>

namespace llmprof::predict::plan {

Result<std::optional<std::int64_t>> least_count(std::int64_t least, std::int64_t most, std::int64_t guess,
                                                const std::function<Result<bool>(std::int64_t)>& enough) {
  using Found = std::optional<std::int64_t>;
  if (least > most) return Found{};
  // Everything up to `low` is too little, `high` is enough.
  std::int64_t low = least - 1, high = most + 1;
  std::int64_t at = std::clamp(guess, least, most), stride = 1;
  LLMPROF_LET(const bool first, enough(at));
  (first ? high : low) = at;
  while (first ? low < high - 1 && low == least - 1 : high > most) {
    if (!first && low == most) return Found{};
    at = first ? std::max(least, high - stride) : std::min(most, low + stride);
    LLMPROF_LET(const bool is_enough, enough(at));
    (is_enough ? high : low) = at;
    stride *= 2;
  }
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    LLMPROF_LET(const bool is_enough, enough(middle));
    (is_enough ? high : low) = middle;
  }
  return Found{high};
}

Result<double> highest_load(double most, double tolerance, const std::function<Result<bool>(double)>& kept) {
  double low = 1, high = 1;
  while (high < most) {
    high = std::min(most, high * 2);
    LLMPROF_LET(const bool is_kept, kept(high));
    if (!is_kept) break;
    low = high;
  }
  while (high > low * (1 + tolerance)) {
    const double middle = (low + high) / 2;
    LLMPROF_LET(const bool is_kept, kept(middle));
    (is_kept ? low : high) = middle;
  }
  return low;
}

bool dominates(const Objectives& a, const Objectives& b) {
  const bool nowhere_worse = a.cost <= b.cost && a.energy <= b.energy && a.latency <= b.latency;
  return nowhere_worse && (a.cost < b.cost || a.energy < b.energy || a.latency < b.latency);
}

std::vector<std::size_t> pareto_front(const std::vector<Objectives>& rows) {
  std::vector<std::size_t> front;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (std::ranges::none_of(rows, [&](const Objectives& other) { return dominates(other, rows[i]); }))
      front.push_back(i);
  }
  return front;
}

}  // namespace llmprof::predict::plan
