#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/strings.h"
#include "report/bench.h"

namespace llmprof::report {
namespace {

using analyze::BenchPoint;

// Nothing is an empty cell, not a quoted one.
std::string text(const std::string& value) { return value.empty() ? "" : base::csv_text(value); }
std::string number(const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; }
std::string number(const std::optional<std::int64_t>& value) { return value ? fmt::format("{}", *value) : ""; }

// Columns behind the axes, with how a point fills them.
struct CsvColumn {
  const char* title;
  std::string (*cell)(const BenchPoint&);
};
constexpr CsvColumn kColumns[] = {
    {"name", [](const BenchPoint& p) { return text(p.name); }},
    {"cache", [](const BenchPoint& p) { return text(p.cache); }},
    {"implementation", [](const BenchPoint& p) { return text(p.implementation); }},
    {"method", [](const BenchPoint& p) { return text(p.method); }},
    {"kernels", [](const BenchPoint& p) { return text(p.kernels); }},
    {"timer", [](const BenchPoint& p) { return text(p.timer); }},
    {"status", [](const BenchPoint& p) { return text(p.status); }},
    {"reason", [](const BenchPoint& p) { return text(p.reason); }},
    {"samples", [](const BenchPoint& p) { return fmt::format("{}", p.samples); }},
    {"median_ns", [](const BenchPoint& p) { return number(p.median_ns); }},
    {"low_ns", [](const BenchPoint& p) { return number(p.low_ns); }},
    {"high_ns", [](const BenchPoint& p) { return number(p.high_ns); }},
    {"mean_ns", [](const BenchPoint& p) { return number(p.mean_ns); }},
    {"min_ns", [](const BenchPoint& p) { return number(p.min_ns); }},
    {"max_ns", [](const BenchPoint& p) { return number(p.max_ns); }},
    {"stddev_ns", [](const BenchPoint& p) { return number(p.stddev_ns); }},
    {"p5_ns", [](const BenchPoint& p) { return number(p.p5_ns); }},
    {"p95_ns", [](const BenchPoint& p) { return number(p.p95_ns); }},
    {"p99_ns", [](const BenchPoint& p) { return number(p.p99_ns); }},
    {"noisy", [](const BenchPoint& p) { return std::string(p.noisy ? "true" : "false"); }},
    {"stopped_by", [](const BenchPoint& p) { return text(p.stopped_by); }},
    {"throttled", [](const BenchPoint& p) { return fmt::format("{}", p.throttled); }},
    {"clock_mhz", [](const BenchPoint& p) { return number(p.clock_mhz); }},
    {"flops", [](const BenchPoint& p) { return fmt::format("{}", p.flops); }},
    {"read_bytes", [](const BenchPoint& p) { return fmt::format("{}", p.read_bytes); }},
    {"write_bytes", [](const BenchPoint& p) { return fmt::format("{}", p.write_bytes); }},
    {"flops_per_s", [](const BenchPoint& p) { return number(p.flops_per_s); }},
    {"bytes_per_s", [](const BenchPoint& p) { return number(p.bytes_per_s); }},
    {"floor_ns", [](const BenchPoint& p) { return number(p.floor_ns); }},
    {"of_roof", [](const BenchPoint& p) { return number(p.of_roof); }},
    {"bound", [](const BenchPoint& p) { return text(p.bound); }},
    {"denominator", [](const BenchPoint& p) { return text(p.denominator); }},
    {"tensor_bytes", [](const BenchPoint& p) { return fmt::format("{}", p.tensor_bytes); }},
    {"workspace_bytes", [](const BenchPoint& p) { return fmt::format("{}", p.workspace_bytes); }},
    {"error", [](const BenchPoint& p) { return number(p.error); }},
    {"event_ns", [](const BenchPoint& p) { return number(p.event_ns); }},
    {"graph_ns", [](const BenchPoint& p) { return number(p.graph_ns); }},
    {"used_calls", [](const BenchPoint& p) { return number(p.used_calls); }},
    {"used_ns", [](const BenchPoint& p) { return number(p.used_ns); }},
};

std::vector<std::string> axes_of(const std::vector<BenchPoint>& points) {
  std::vector<std::string> axes;
  for (const BenchPoint& point : points) {
    for (const auto& [axis, value] : point.axes) {
      if (std::ranges::find(axes, axis) == axes.end()) axes.push_back(axis);
    }
  }
  return axes;
}

std::string axis_cell(const BenchPoint& point, const std::string& axis) {
  for (const auto& [name, value] : point.axes) {
    if (name == axis) return fmt::format("{}", value);
  }
  return "";
}

}  // namespace

std::string to_csv(const BenchPage& page) {
  const std::vector<std::string> axes = axes_of(page.results.points);
  std::string out = "op,type";
  for (const std::string& axis : axes) out += "," + base::csv_text(axis);
  for (const CsvColumn& column : kColumns) out += fmt::format(",{}", column.title);
  out += "\n";
  for (const BenchPoint& point : page.results.points) {
    out += base::csv_text(point.op) + "," + base::csv_text(point.type);
    for (const std::string& axis : axes) out += "," + axis_cell(point, axis);
    for (const CsvColumn& column : kColumns) out += "," + column.cell(point);
    out += "\n";
  }
  return out;
}

}  // namespace llmprof::report
