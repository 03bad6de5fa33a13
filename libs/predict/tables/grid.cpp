#include "predict/tables/grid.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace llmprof::predict {

std::string_view basis_name(Basis basis) {
  switch (basis) {
    case Basis::kMeasured:
      return "measured";
    case Basis::kInterpolated:
      return "interpolated";
    case Basis::kExtrapolated:
      return "extrapolated";
    case Basis::kAssumed:
      return "assumed";
    case Basis::kRoof:
      break;
  }
  return "roof";
}

void Grid::add(std::span<const double> at, double ns) {
  Point point{.ns = ns};
  std::copy_n(at.begin(), std::min(at.size(), axes_), point.at.begin());
  points_.push_back(point);
}

Grid::Settled Grid::settle(const FloorAt* floor) {
  floor_ = floor;
  Settled settled;
  std::ranges::stable_sort(points_, {}, &Point::at);
  std::vector<Point> kept;
  for (std::size_t i = 0; i < points_.size();) {
    std::size_t end = i;
    double sum = 0;
    for (; end < points_.size() && points_[end].at == points_[i].at; ++end) sum += points_[end].ns;
    Point point = points_[i];
    point.ns = sum / static_cast<double>(end - i);
    settled.duplicates += static_cast<std::int64_t>(end - i) - 1;
    if (floor != nullptr && floor->impossible(std::span(point.at).first(axes_), point.ns)) {
      settled.impossible += static_cast<std::int64_t>(end - i);
    } else {
      point.floor_ns = floor_ns(point.at);
      kept.push_back(point);
    }
    i = end;
  }
  points_ = std::move(kept);
  // Shares of a roof of 0 say nothing: what fits the chip has none.
  if (blend_ == Blend::kUtilisation &&
      std::ranges::any_of(points_, [](const Point& point) { return point.floor_ns <= 0; }))
    blend_ = Blend::kOverhead;
  best_ = 1;
  for (const Point& point : points_) best_ = std::max(best_, point.floor_ns / point.ns);
  build_levels();
  return settled;
}

void Grid::build_levels() {
  levels_ = {};
  for (std::uint32_t i = 0; i < points_.size(); ++i) {
    std::size_t differs = 0;  // the first axis that differs from the point before
    if (i > 0) {
      while (differs < axes_ && points_[i].at[differs] == points_[i - 1].at[differs]) ++differs;
    }
    for (std::size_t axis = differs; axis < axes_; ++axis) {
      levels_[axis].values.push_back(points_[i].at[axis]);
      levels_[axis].begin.push_back(axis + 1 < axes_ ? static_cast<std::uint32_t>(levels_[axis + 1].values.size()) : i);
    }
  }
  for (std::size_t axis = 0; axis + 1 < axes_; ++axis) {
    levels_[axis].begin.push_back(static_cast<std::uint32_t>(levels_[axis + 1].values.size()));
  }
}

std::pair<double, double> Grid::range(std::size_t axis) const {
  const auto [least, most] = std::ranges::minmax_element(levels_[axis].values);
  return {*least, *most};
}

double Grid::floor_ns(const At& at) const { return floor_ == nullptr ? 0 : floor_->ns(std::span(at).first(axes_)); }

Grid::Bracket Grid::bracket(std::size_t axis, std::uint32_t begin, std::uint32_t end, const Query& query) const {
  const std::vector<double>& values = levels_[axis].values;
  const double at = query.at[axis];
  // Nothing is between "no decodes" and "one decode"; where only the other case was measured, it has to do.
  if (apart_[axis] && at > 0 && values[begin] == 0 && end - begin > 1) ++begin;
  const auto first = values.begin() + begin, last = values.begin() + end;
  auto high = std::lower_bound(first, last, at);
  auto low = high;
  if (high != last && *high == at) {
    if (query.hidden_axis != axis) {
      const auto exact = static_cast<std::uint32_t>(high - values.begin());
      return {exact, exact};
    }
    ++high;
  }
  const bool has_low = low != first, has_high = high != last;
  if (!has_low && !has_high) return {.any = false};
  const auto index = [&](auto position) { return static_cast<std::uint32_t>(position - values.begin()); };
  if (!has_low) return {index(high), index(high), 0, Basis::kExtrapolated};
  --low;
  if (!has_high) return {index(low), index(low), 0, Basis::kExtrapolated, true, true, begin};
  const bool power = blend_ == Blend::kPower && *low > 0;
  const double weight = power ? std::log(at / *low) / std::log(*high / *low) : (at - *low) / (*high - *low);
  return {index(low), index(high), weight, Basis::kInterpolated};
}

// The answer at one value of an axis: what the axes below say there.
Grid::Found Grid::child(std::size_t axis, std::uint32_t index, Query& query) const {
  const double asked = query.at[axis];
  query.at[axis] = levels_[axis].values[index];
  Found found;
  if (axis + 1 == axes_) {
    const Point& point = points_[levels_[axis].begin[index]];
    found.value = blend_ == Blend::kUtilisation ? point.floor_ns / point.ns
                  : blend_ == Blend::kPower     ? std::log(point.ns)
                                                : point.ns - point.floor_ns;
  } else {
    found = find(axis + 1, levels_[axis].begin[index], levels_[axis].begin[index + 1], query);
  }
  query.at[axis] = asked;
  return found;
}

// Above the last value, its overhead continues along the line from the value near half of it: a neighbour may be so
// near that the line would be one through noise. It never shrinks.
Grid::Found Grid::beyond(std::size_t axis, const Bracket& where, Query& query, Found edge) const {
  const std::vector<double>& values = levels_[axis].values;
  const double last = values[where.low];
  const auto half = std::lower_bound(values.begin() + where.first, values.begin() + where.low, last / 2);
  const auto index = static_cast<std::uint32_t>(half - values.begin());
  if (blend_ == Blend::kPower && last > 0) {
    const double below = where.low > where.first ? values[where.low - 1] : 0;
    const Found lower = below > 0 ? child(axis, where.low - 1, query) : Found{.any = false};
    const double exponent = lower.any ? std::max(0.0, (edge.value - lower.value) / std::log(last / below)) : 1;
    edge.value += exponent * std::log(query.at[axis] / last);
    return edge;
  }
  const Found before = index < where.low ? child(axis, index, query) : Found{.any = false};
  if (before.any) {
    edge.value += std::max(0.0, (edge.value - before.value) / (last - *half)) * (query.at[axis] - last);
    return edge;
  }
  // One value is no line: its share of the roof holds, so the overhead grows as the floor does; without a floor, as the
  // axis does.
  Query at_edge = query;
  at_edge.at[axis] = last;
  const double edge_ns = floor_ns(at_edge.at);
  if (edge_ns > 0) {
    edge.value *= floor_ns(query.at) / edge_ns;
  } else if (last > 0) {
    edge.value *= query.at[axis] / last;
  }
  return edge;
}

// Below the first value of an axis, as a power of it: by the exponent of the first two, or 1 where there is one.
double Grid::below_ns_log(std::size_t axis, std::uint32_t first, std::uint32_t end, Query& query,
                          double first_log) const {
  const std::vector<double>& values = levels_[axis].values;
  if (!(query.at[axis] > 0) || !(values[first] > 0)) return 0;
  double exponent = 1;
  if (first + 1 < end) {
    const Found next = child(axis, first + 1, query);
    if (next.any) exponent = std::max(0.0, (next.value - first_log) / std::log(values[first + 1] / values[first]));
  }
  return exponent * std::log(query.at[axis] / values[first]);
}

Grid::Found Grid::find(std::size_t axis, std::uint32_t begin, std::uint32_t end, Query& query) const {
  const Bracket where = bracket(axis, begin, end, query);
  if (!where.any) return {.any = false};
  Found low = child(axis, where.low, query);
  if (where.low == where.high) {
    low.basis = std::max(low.basis, where.basis);
    if (low.any && blend_ == Blend::kPower && !where.above && where.basis == Basis::kExtrapolated) {
      low.value += below_ns_log(axis, where.low, end, query, low.value);
    }
    // Below the first value the overhead stays: small calls take as long as the smallest measured one.
    if (low.any && where.above && blend_ != Blend::kUtilisation) {
      low = beyond(axis, where, query, low);
    }
    return low;
  }
  const Found high = child(axis, where.high, query);
  if (!low.any || !high.any) return low.any ? low : high;
  return {low.value + where.weight * (high.value - low.value), std::max({low.basis, high.basis, where.basis}), true};
}

Answer Grid::answer(Found found, const Query& query) const {
  const double floor = floor_ns(query.at);
  const double ns = blend_ == Blend::kUtilisation ? floor / found.value
                    : blend_ == Blend::kPower     ? std::exp(found.value)
                                                  : floor + found.value;
  return {std::max(ns, floor / best_), found.basis};
}

Answer Grid::ask(std::span<const double> at) const {
  LLMPROF_ASSERT(!points_.empty() && at.size() == axes_);
  Query query;
  std::ranges::copy(at, query.at.begin());
  const auto same = std::ranges::lower_bound(points_, query.at, {}, &Point::at);
  if (same != points_.end() && same->at == query.at) return {same->ns, Basis::kMeasured};
  return answer(find(0, 0, static_cast<std::uint32_t>(levels_[0].values.size()), query), query);
}

std::optional<Answer> Grid::ask_without(std::span<const double> at, std::size_t hidden_axis) const {
  if (points_.empty()) return std::nullopt;
  Query query{.hidden_axis = hidden_axis};
  std::ranges::copy(at, query.at.begin());
  const Found found = find(0, 0, static_cast<std::uint32_t>(levels_[0].values.size()), query);
  if (!found.any) return std::nullopt;
  return answer(found, query);
}

}  // namespace llmprof::predict
