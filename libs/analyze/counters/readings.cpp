#include "analyze/counters/readings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "analyze/rows_of.h"

namespace llmprof::analyze::counters {

namespace {

constexpr const char* kWindows = R"(
SELECT w.counter_window_id AS measurement, w.id, w.scope, w.begin_ns, w.end_ns, w.thread_id, w.device_id, w.name,
  p.step_id, p.stage
FROM counter_window AS w LEFT JOIN launch_place AS p ON p.graph_launch_id = w.graph_launch_id
WHERE w.scope IN ('range', 'graph')
ORDER BY measurement, w.pass)";

constexpr const char* kValues = R"(
SELECT scope_id, metric, CAST(value AS DOUBLE) FROM counter WHERE scope IN ('range', 'graph') ORDER BY scope_id, id)";

constexpr const char* kSamples = R"(
SELECT w.id, w.device_id, w.begin_ns, w.end_ns, c.metric, CAST(c.value AS DOUBLE)
FROM counter_window AS w JOIN counter AS c ON c.scope_id = w.id AND c.scope = 'sample'
WHERE w.scope = 'sample' AND w.end_ns > w.begin_ns
ORDER BY w.device_id, w.begin_ns, w.id)";

constexpr const char* kSteps = R"(
WITH cost AS (
  SELECT pass_id, sum(flops) AS flops, sum(weight_bytes + kv_bytes + activation_bytes) AS bytes
  FROM model_op
  GROUP BY pass_id)
SELECT s.id, s.thread_id, s.begin_ns, coalesce(r.end_ns, s.end_ns), s.turn_ns, s.end_ns, s.stage, r.name,
  CAST(c.flops AS DOUBLE), CAST(c.bytes AS DOUBLE)
FROM step AS s LEFT JOIN "range" AS r ON r.id = s.range_id LEFT JOIN cost AS c ON c.pass_id = s.pass_id
ORDER BY s.thread_id, s.begin_ns, s.id)";

struct WindowRow {
  std::int64_t measurement = 0, id = 0;
  std::string scope;
  std::int64_t begin_ns = 0, end_ns = 0, thread_id = 0, device_id = 0;
  std::string name;
  std::optional<std::int64_t> step_id;
  std::string stage;
};

std::int64_t known(std::int64_t value, std::int64_t otherwise) {
  return value == trace::Columns::kNull ? otherwise : value;
}

class SampleReader {
 public:
  explicit SampleReader(std::int64_t preferred) : preferred_(preferred) {}

  void add(const trace::ColumnChunk& chunk) {
    const auto& v = chunk.values;
    for (std::size_t i = 0; i < chunk.count; ++i) {
      if (!wants(v[1][i])) continue;
      if (set_.size() == 0 || v[0][i] != window_) next(v[0][i], v[2][i], v[3][i]);
      set_.values[metric(chunk.names[v[4][i]])].back() = chunk.reals[5][i];
    }
  }
  SampleSet take() { return std::move(set_); }

 private:
  bool wants(std::int64_t device) {
    if (set_.size() > 0 && set_.device_id != device) {
      if (device != preferred_) return false;
      set_ = {};
    }
    set_.device_id = device;
    return true;
  }
  void next(std::int64_t window, std::int64_t begin, std::int64_t end) {
    window_ = window;
    set_.begin_ns.push_back(begin);
    set_.end_ns.push_back(end);
    for (auto& values : set_.values) values.push_back(std::numeric_limits<double>::quiet_NaN());
  }
  std::size_t metric(const std::string& name) {
    const auto found = std::ranges::find(set_.metrics, name);
    if (found != set_.metrics.end()) return static_cast<std::size_t>(found - set_.metrics.begin());
    set_.metrics.push_back(name);
    set_.values.emplace_back(set_.size(), std::numeric_limits<double>::quiet_NaN());
    return set_.metrics.size() - 1;
  }

  std::int64_t preferred_, window_ = 0;
  SampleSet set_;
};

}  // namespace

Result<std::vector<Measurement>> read_measurements(const trace::Run& run) {
  std::vector<Measurement> all;
  LLMPROF_LET(const trace::ResultTable windows, run.query(kWindows));
  LLMPROF_LET(const std::vector<WindowRow> rows, rows_as<WindowRow>(windows));
  for (const WindowRow& row : rows) {
    if (all.empty() || all.back().id != row.measurement)
      all.push_back(
          {.id = row.measurement, .device_id = row.device_id, .graph = row.scope == "graph", .name = row.name});
    all.back().windows.push_back(
        {row.id, row.begin_ns, row.end_ns, row.thread_id, row.step_id.value_or(-1), row.stage});
  }
  LLMPROF_TRY(run.column_chunks(kValues, [&](const trace::ColumnChunk& chunk) {
    for (std::size_t i = 0; i < chunk.count; ++i) {
      const auto found = std::ranges::lower_bound(all, chunk.values[0][i], {}, &Measurement::id);
      if (found == all.end() || found->id != chunk.values[0][i] || !std::isfinite(chunk.reals[2][i])) continue;
      found->metrics.emplace(chunk.names[chunk.values[1][i]], chunk.reals[2][i]);
    }
    return true;
  }));
  std::erase_if(all, [](const Measurement& measurement) { return measurement.metrics.empty(); });
  return all;
}

Result<SampleSet> read_samples(const trace::Run& run, std::int64_t preferred) {
  SampleReader reader(preferred);
  LLMPROF_TRY(run.column_chunks(kSamples, [&](const trace::ColumnChunk& chunk) {
    reader.add(chunk);
    return true;
  }));
  return reader.take();
}

Result<std::vector<PlacedStep>> read_steps(const trace::Run& run) {
  std::vector<PlacedStep> all;
  LLMPROF_TRY(run.column_chunks(kSteps, [&](const trace::ColumnChunk& chunk) {
    const auto& v = chunk.values;
    for (std::size_t i = 0; i < chunk.count; ++i) {
      all.push_back({.id = v[0][i],
                     .thread_id = v[1][i],
                     .begin_ns = v[2][i],
                     .host_end_ns = known(v[3][i], v[5][i]),
                     .turn_ns = v[4][i],
                     .end_ns = v[5][i],
                     .stage = chunk.names[v[6][i]],
                     .range = chunk.names[v[7][i]],
                     .flops = chunk.reals[8][i],
                     .bytes = chunk.reals[9][i]});
    }
    return true;
  }));
  return all;
}

bool has_rows(const trace::Run& run, std::string_view table) {
  return std::ranges::any_of(run.info().files,
                             [&](const trace::TableFile& file) { return file.table == table && file.rows > 0; });
}

namespace {

using hw::counters::Aggregation;
using hw::counters::Counter;

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
