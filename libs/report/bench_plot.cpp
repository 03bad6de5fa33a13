#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "report/bench.h"
#include "report/bench_group.h"

namespace llmprof::report {
namespace {

using analyze::BenchPoint;

constexpr std::size_t kMostSeries = 8;  // more cannot be told apart

Scale scale_of(const std::set<std::int64_t>& values) {
  const std::int64_t least = *values.begin(), most = *values.rbegin();
  return values.size() > 2 && least > 0 && most / least >= 8 ? Scale::kLog2 : Scale::kLinear;
}

// What tells a line from its neighbours: every varying column but the axis, and not the name, which follows from them.
std::string series_name(const BenchGroup& group, const BenchPoint& point, const std::string& across) {
  std::string name;
  for (const BenchColumn& column : group.columns) {
    if ((column.axis && column.title == across) || column.title == "name" || column.title == "timer") continue;
    name +=
        fmt::format("{}{}{}", name.empty() ? "" : ", ", column.axis ? column.title + " " : "", cell_of(point, column));
  }
  return name.empty() ? "measured" : name;
}

std::int64_t value_of(const BenchPoint& point, const std::string& axis) {
  for (const auto& [name, value] : point.axes) {
    if (name == axis) return value;
  }
  return 0;
}

Plot empty_plot(const BenchGroup& group, const std::string& axis, const std::string& device) {
  return {.title = fmt::format("{}: time by {}", group.op, axis),
          .note = device + (device.empty() || group.fixed.empty() ? "" : ", ") + group.fixed,
          .x = {.title = axis, .unit = "", .scale = Scale::kLinear, .prefixes = false},
          .y = {.title = "median time", .unit = "s", .scale = Scale::kLog10, .prefixes = true},
          .series = {},
          .guides = {}};
}

// The floor of each point, as a line without marks, where a single line leaves room for it.
void add_floor(const BenchGroup& group, const std::string& axis, Plot& plot) {
  if (plot.series.size() != 1) return;
  Series floor{.name = "floor at the peaks", .points = {}, .mark = Mark::kLine};
  for (const BenchPoint* point : group.measured) {
    if (point->floor_ns) floor.points.push_back({static_cast<double>(value_of(*point, axis)), *point->floor_ns * 1e-9});
  }
  std::ranges::sort(floor.points, {}, &PlotPoint::x);
  if (floor.points.size() > 1) plot.series.push_back(std::move(floor));
}

std::optional<Plot> plot_of(const BenchGroup& group, const std::string& axis, const std::string& device) {
  Plot plot = empty_plot(group, axis, device);
  std::vector<std::string> order;
  std::map<std::string, Series> lines;
  std::set<std::int64_t> values;
  for (const BenchPoint* point : group.measured) {
    const std::string name = series_name(group, *point, axis);
    if (!lines.contains(name)) order.push_back(name);
    Series& line = lines[name];
    line.name = name;
    line.points.push_back({static_cast<double>(value_of(*point, axis)), *point->median_ns * 1e-9});
    values.insert(value_of(*point, axis));
  }
  plot.x.scale = scale_of(values);
  std::size_t left_out = 0;
  for (const std::string& name : order) {
    Series& line = lines[name];
    if (line.points.size() < 2) continue;
    std::ranges::stable_sort(line.points, {}, &PlotPoint::x);
    if (plot.series.size() == kMostSeries) {
      ++left_out;
    } else {
      plot.series.push_back(std::move(line));
    }
  }
  if (plot.series.empty()) return std::nullopt;
  if (left_out > 0) plot.note += fmt::format(", the first {} of {} lines", kMostSeries, kMostSeries + left_out);
  add_floor(group, axis, plot);
  return plot;
}

// Names may be a stranger's: nothing but letters, digits, '_' and '-' gets into the name of a file.
std::string file_part(std::string text) {
  std::ranges::replace_if(
      text,
      [](char c) { return !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'); },
      '-');
  return text;
}

}  // namespace

std::vector<BenchPlot> to_plots(const BenchPage& page) {
  const std::string device = page.results.devices.empty() ? "" : page.results.devices.front().name;
  std::vector<BenchPlot> plots;
  for (const BenchGroup& group : groups_of(page.results.points)) {
    for (const BenchColumn& column : group.columns) {
      if (!column.axis) continue;
      if (auto plot = plot_of(group, column.title, device)) {
        plots.push_back({file_part(group.op) + "-" + file_part(column.title), std::move(*plot)});
      }
    }
  }
  return plots;
}

}  // namespace llmprof::report
