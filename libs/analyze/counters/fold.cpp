#include "analyze/counters/fold.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace llmprof::analyze::counters {
namespace {

using hw::counters::Counter;
using hw::counters::Aggregation;

hw::counters::Lookup lookup_in(const Metrics& metrics) {
  return [&metrics](std::string_view metric) -> std::optional<double> {
    const auto found = metrics.find(metric);
    return found == metrics.end() ? std::nullopt : std::optional(found->second);
  };
}

// Metrics that some counter of the catalogue is made of.
const std::set<std::string, std::less<>>& metrics_of_catalog() {
  static const std::set<std::string, std::less<>> kAll = [] {
    std::set<std::string, std::less<>> all;
    for (const Counter& counter : hw::counters::catalog()) {
      for (const auto& formula : counter.formulas) all.insert(formula.metrics.begin(), formula.metrics.end());
    }
    return all;
  }();
  return kAll;
}

}  // namespace

bool adds_up(std::string_view metric) { return metric.ends_with(".sum"); }

std::optional<double> value_of(std::string_view counter, const Metrics& metrics) {
  const Counter* found = hw::counters::find_counter(counter);
  return found == nullptr ? std::nullopt : hw::counters::evaluate(*found, lookup_in(metrics));
}

void Fold::Sums::add(double x, double by) {
  value += x * by, weight += by;
  plain += x, square += x * x;
  ++count;
}

// Of a sample of occurrences, so n - 1.
std::optional<double> Fold::Sums::spread() const {
  if (count < 2 || plain == 0) return std::nullopt;
  const double n = static_cast<double>(count), mean = plain / n;
  return std::sqrt(std::max(0.0, (square - n * mean * mean) / (n - 1))) / std::abs(mean);
}

void Fold::add(const Metrics& metrics, double occurrences, double time_ns) {
  if (occurrences <= 0) return;
  ++count_;
  for (const Counter& counter : hw::counters::catalog()) {
    const std::optional<double> value = hw::counters::evaluate(counter, lookup_in(metrics));
    if (!value) continue;
    const bool sum = counter.together == Aggregation::kSum;
    const double by = counter.together == Aggregation::kMeanByTime ? std::max(time_ns, 1.0) : 1;
    counters_[&counter].add(sum ? *value / occurrences : *value, by);
  }
  for (const auto& [metric, value] : metrics) {
    const bool sum = adds_up(metric);
    metrics_[metric].add(sum ? value / occurrences : value, sum ? 1 : std::max(time_ns, 1.0));
  }
}

CounterValue Fold::value(const std::string& name, const Sums& sums, const std::string& method) const {
  return {.counter = name,
          .unit = "",
          .denominator = "",
          .value = sums.mean(),
          .spread = sums.spread(),
          .error = std::nullopt,
          .occurrences = sums.count,
          .method = method};
}

std::vector<CounterValue> Fold::values(const std::string& method) const {
  std::vector<CounterValue> out;
  for (const auto& [counter, sums] : counters_) {
    out.push_back(value(counter->name, sums, method));
    out.back().unit = counter->unit, out.back().denominator = counter->denominator;
  }
  for (const auto& [metric, sums] : metrics_) {
    if (metrics_of_catalog().contains(metric)) continue;
    out.push_back(value(metric, sums, method));
    if (metric.find("pct") != metric.npos) out.back().unit = "%", out.back().denominator = "as the metric's name says";
  }
  return out;
}

Metrics Fold::metrics() const {
  Metrics out;
  for (const auto& [metric, sums] : metrics_) out.emplace(metric, sums.mean());
  return out;
}

}  // namespace llmprof::analyze::counters
