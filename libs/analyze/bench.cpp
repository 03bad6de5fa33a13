#include "analyze/bench.h"

#include <fmt/format.h>

#include "analyze/context.h"
#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {
namespace {

void read_statistics(const RowView& row, BenchPoint& point) {
  point.mean_ns = row.maybe_real("mean_ns");
  point.median_ns = row.maybe_real("median_ns");
  point.min_ns = row.maybe_real("min_ns");
  point.max_ns = row.maybe_real("max_ns");
  point.stddev_ns = row.maybe_real("stddev_ns");
  point.p5_ns = row.maybe_real("p5_ns");
  point.p95_ns = row.maybe_real("p95_ns");
  point.p99_ns = row.maybe_real("p99_ns");
  point.low_ns = row.maybe_real("low_ns");
  point.high_ns = row.maybe_real("high_ns");
  point.samples = row.integer("samples");
  point.noisy = row.integer("noisy") != 0;
  point.stopped_by = row.text("stopped_by");
  point.throttled = row.integer("throttled");
  point.clock_mhz = row.maybe_real("clock_mhz");
}

void read_work(const RowView& row, BenchPoint& point) {
  point.flops = row.real("flops");
  point.read_bytes = row.real("read_bytes");
  point.write_bytes = row.real("write_bytes");
  point.flops_per_s = row.maybe_real("flops_per_s");
  point.bytes_per_s = row.maybe_real("bytes_per_s");
  point.floor_ns = row.maybe_real("floor_ns");
  point.of_roof = row.maybe_real("of_roof");
  point.bound = row.text("bound");
  point.denominator = row.text("denominator");
  point.tensor_bytes = row.integer("tensor_bytes");
  point.workspace_bytes = row.integer("workspace_bytes");
  point.buffer_sets = row.integer("buffer_sets");
  point.error = row.maybe_real("error");
  point.event_ns = row.maybe_real("event_ns");
  point.graph_ns = row.maybe_real("graph_ns");
  point.used_calls = row.maybe_integer("used_calls");
  point.used_ns = row.maybe_integer("used_ns");
  point.begin_ns = row.integer("begin_ns");
  point.end_ns = row.integer("end_ns");
}

Result<std::vector<BenchPoint>> read_points(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/bench_points"));
  std::vector<BenchPoint> points(table.rows.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const RowView row{table, i};
    BenchPoint& point = points[i];
    point.id = row.integer("id");
    point.device = row.text("device");
    point.op = row.text("op");
    point.type = row.text("type");
    point.name = row.text("name");
    point.implementation = row.text("implementation");
    point.method = row.text("method");
    point.kernels = row.text("kernels");
    point.timer = row.text("timer");
    point.cache = row.text("cache");
    point.status = row.text("status");
    point.reason = row.text("reason");
    read_statistics(row, point);
    read_work(row, point);
  }
  return points;
}

std::string unit_of(std::string_view quantity) {
  return quantity == "flops" ? "FLOP/s" : quantity == "bandwidth" ? "B/s" : "s";
}

// Points and axes are both sorted by point.
Result<void> read_axes(const trace::Run& run, std::vector<BenchPoint>& points) {
  LLMPROF_LET(const trace::ResultTable axes, ask(run, "sql/bench_axes"));
  std::size_t at = 0;
  for (std::size_t i = 0; i < axes.rows.size(); ++i) {
    const RowView row{axes, i};
    while (at < points.size() && points[at].id < row.integer("bench_id")) ++at;
    if (at == points.size()) break;
    if (points[at].id == row.integer("bench_id")) points[at].axes.emplace_back(row.text("axis"), row.integer("value"));
  }
  return {};
}

}  // namespace

std::string BenchPoint::sizes() const {
  std::string text;
  for (const auto& [axis, value] : axes) text += fmt::format("{}{}={}", text.empty() ? "" : " ", axis, value);
  return text;
}

std::string BenchPoint::key() const { return fmt::format("{} {} {} {} {}", op, type, sizes(), cache, implementation); }

Result<BenchResults> bench_results(const trace::Run& run) {
  BenchResults results;
  LLMPROF_LET(results.points, read_points(run));
  if (results.points.empty() && run.info().source != "bench") return results;
  LLMPROF_TRY(read_axes(run, results.points));
  LLMPROF_LET(AnalysisContext analysis, find_context(run, {}));
  for (const PeakRate& rate : analysis.peaks) {
    if (analysis.device_ids.empty() || rate.device_id != analysis.device_ids.front()) continue;
    results.peaks.push_back({rate.quantity, rate.type, rate.value, unit_of(rate.quantity), rate.source, rate.method});
  }
  results.devices = std::move(analysis.devices);
  LLMPROF_LET(results.losses, read_losses(run));
  return results;
}

}  // namespace llmprof::analyze
