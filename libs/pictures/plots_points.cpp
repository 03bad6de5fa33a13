// Pictures that are lines and points over two axes.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "pictures/plots.h"
#include "report/layout.h"
#include "report/roofline.h"

namespace llmprof::pictures {
namespace {

using report::Mark;
using report::Plot;
using report::Scale;
using report::Series;

constexpr std::string_view kCacheRoof = "L2 bandwidth";
constexpr std::size_t kMostRoofs = 4, kMostLabels = 18;
constexpr double kWideSpread = 20;  // of the median: what is longer needs a logarithmic axis

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

bool is_shown(const RooflinePoint& point, const std::string& stage) {
  return (stage.empty() || point.stage == stage || (point.kind == "stage" && point.name == stage)) &&
         std::isfinite(point.intensity) && point.intensity > 0 && point.flops_per_s > 0;
}

std::vector<report::FlatRoof> flat_roofs(const Roofline& roofline) {
  std::vector<report::FlatRoof> flat;
  for (const Roof& roof : roofline.roofs) {
    const bool vector = roof.name.find("_vector") != std::string::npos;  // of plain cores: the type has a higher one
    if (roof.flops_per_s.value_or(0) > 0 && !vector) flat.push_back({roof.name, *roof.flops_per_s, roof.source});
  }
  flat = report::merged_roofs(std::move(flat));
  if (flat.size() > kMostRoofs) flat.resize(kMostRoofs);
  return flat;
}

const Roof* bandwidth_roof(const Roofline& roofline, bool of_cache) {
  const auto found = std::find_if(roofline.roofs.begin(), roofline.roofs.end(), [&](const Roof& roof) {
    return roof.bytes_per_s.value_or(0) > 0 && (roof.name == kCacheRoof) == of_cache;
  });
  return found == roofline.roofs.end() ? nullptr : &*found;
}

// Only where something was counted that it is the roof of.
void add_cache_roof(const Roofline& roofline, double least, double highest, Plot& plot) {
  const Roof* cache = bandwidth_roof(roofline, true);
  const bool wanted = std::any_of(roofline.points.begin(), roofline.points.end(),
                                  [](const RooflinePoint& point) { return point.level == "l2"; });
  if (cache == nullptr || !wanted || least * *cache->bytes_per_s >= highest) return;
  plot.series.push_back(
      {.name = fmt::format("{} {}, {}", cache->name, base::human_rate(*cache->bytes_per_s, "B/s"), cache->source),
       .points = {{least, least * *cache->bytes_per_s}, {highest / *cache->bytes_per_s, highest}},
       .mark = Mark::kLine,
       .backdrop = true});
}

std::string level_name(std::string_view level) { return level == "l2" ? "L2" : level == "l1" ? "L1" : "DRAM"; }

// Points of one series share a mark; counted ones have their own.
std::string series_of(const RooflinePoint& point) {
  const std::string of = point.stage.empty() ? "" : " of " + point.stage;
  const std::string name = point.kind == "stage" ? point.name : fmt::format("{}s{}", point.kind, of);
  return point.source == "counters" ? fmt::format("{}, counted: {} bytes", name, level_name(point.level)) : name;
}

void add_point(const RooflinePoint& point, Plot& plot) {
  report::series_named(plot, series_of(point)).points.push_back({point.intensity, point.flops_per_s});
  if (plot.labels.size() >= kMostLabels) return;
  const bool stage_of_level = point.kind == "stage" && point.source == "counters";
  plot.labels.push_back({point.intensity, point.flops_per_s,
                         stage_of_level ? fmt::format("{}, {}", point.name, level_name(point.level)) : point.name});
}

// Modules, and kernels whose work is told from shapes, say what operators say: only where there are none. Counters say
// more.
bool is_drawn(const Roofline& roofline, const RooflinePoint& point) {
  if (point.kind == "stage" || point.kind == "operator" || point.source == "counters") return true;
  return std::none_of(roofline.points.begin(), roofline.points.end(),
                      [](const RooflinePoint& other) { return other.kind == "operator"; });
}

}  // namespace

Plot roofline_plot(const Roofline& roofline, const std::string& stage) {
  const Roof* memory = bandwidth_roof(roofline, false);
  const double bandwidth = memory != nullptr ? *memory->bytes_per_s : 0;
  const std::vector<report::FlatRoof> flat = flat_roofs(roofline);
  std::vector<double> seen{1, 4};
  for (const report::FlatRoof& roof : flat) {
    if (bandwidth > 0) seen.push_back(std::max(4.0, roof.flops_per_s / bandwidth * 4));
  }
  for (const RooflinePoint& point : roofline.points) {
    if (is_shown(point, stage)) seen.insert(seen.end(), {point.intensity / 2, point.intensity * 2});
  }
  const auto [least, most] = report::powers_of_two_around(seen);
  Plot plot{.title = fmt::format("Roofline of {}", roofline.device)};
  const bool counts = std::any_of(roofline.points.begin(), roofline.points.end(),
                                  [](const RooflinePoint& point) { return point.source == "counters"; });
  plot.x = {counts ? "FLOP per byte that must move, or was counted" : "FLOP per byte that must move", "", Scale::kLog2,
            false};
  plot.y = {"FLOP/s", "FLOP/s", Scale::kLog10};
  const auto name_of = [](const report::FlatRoof& roof) {
    return fmt::format("{} {}, {}", roof.names, base::human_rate(roof.flops_per_s, "FLOP/s"), roof.source);
  };
  for (const report::FlatRoof& roof : flat) plot.labels.push_back({most, roof.flops_per_s, name_of(roof), true});
  for (const char* kind : {"stage", "operator", "module", "kernel"}) {
    for (const RooflinePoint& point : roofline.points) {
      if (point.kind == kind && is_shown(point, stage) && is_drawn(roofline, point)) add_point(point, plot);
    }
  }
  for (const report::FlatRoof& roof : flat)
    plot.series.push_back({.name = name_of(roof),
                           .points = report::roof_points(roof.flops_per_s, bandwidth, least, most),
                           .mark = Mark::kLine,
                           .backdrop = true});
  if (!flat.empty()) add_cache_roof(roofline, least, flat.front().flops_per_s, plot);
  plot.note = "points: FLOPs of the model or of counters / time";
  if (memory != nullptr) {
    plot.note += fmt::format("; slope: {} at {} ({}); flat: peaks of the types", memory->name,
                             base::human_rate(bandwidth, "B/s"), memory->source);
  }
  return plot;
}

Plot steps_plot(const std::vector<analyze::StepCurve>& curves, const std::string& stage) {
  Plot plot{.title = stage.empty() ? "How long steps took" : fmt::format("How long the steps of {} took", stage)};
  plot.x = {.title = "step", .unit = "", .prefixes = false, .whole = true};
  plot.y = {"time of a step", "s"};
  bool thinned = false;
  for (const analyze::StepCurve& curve : curves) {
    if (stage.empty() ? curve.steps < 3 : curve.stage != stage) continue;
    const std::size_t count = curve.duration_ns.size();
    const double each = static_cast<double>(curve.steps) / static_cast<double>(std::max<std::size_t>(count, 1));
    thinned = thinned || each > 1;
    Series series{.name = fmt::format("{}: {}, {} to {}, median {}", curve.stage, report::counted(curve.steps, "step"),
                                      report::time_cell(curve.least_ns), report::time_cell(curve.most_ns),
                                      report::time_cell(curve.median_ns)),
                  .points = {},
                  .mark = count > 64 ? Mark::kLine : Mark::kLineAndPoints};
    for (std::size_t i = 0; i < count; ++i)
      series.points.push_back({std::floor(static_cast<double>(i) * each), seconds(curve.duration_ns[i])});
    plot.series.push_back(std::move(series));
    const bool spread = static_cast<double>(curve.most_ns) > kWideSpread * static_cast<double>(curve.median_ns);
    if (spread && curve.least_ns > 0) plot.y.scale = Scale::kLog10;
    plot.guides.push_back({report::Guide::At::kY, seconds(curve.median_ns),
                           fmt::format("median of {}: {}", curve.stage, report::time_cell(curve.median_ns))});
  }
  plot.note = "measured; a step counts from the end of the one before it where the host ran ahead of the device";
  if (thinned) plot.note += "; of many steps the longest of each piece";
  if (plot.series.size() == 1) {
    plot.note = plot.series.front().name + "; " + plot.note;
  } else {
    plot.guides.clear();  // their labels would lie on each other; the legend has the medians
  }
  return plot;
}

namespace {

void add_memory(Plot& plot, std::string name, const std::vector<analyze::MemoryPoint>& points, std::int64_t begin_ns) {
  if (points.empty()) return;
  Series series{.name = std::move(name), .points = {}, .mark = Mark::kLine};
  for (const analyze::MemoryPoint& point : points) {
    const double at = seconds(point.ts_ns - begin_ns);
    // Memory stays as it is until it changes.
    if (!series.points.empty()) series.points.push_back({at, series.points.back().y});
    series.points.push_back({at, static_cast<double>(point.rss_bytes)});
  }
  plot.series.push_back(std::move(series));
}

std::int64_t first_moment(const analyze::Summary& summary) {
  std::int64_t first = INT64_MAX;
  const auto take = [&](const std::vector<analyze::MemoryPoint>& points) {
    if (!points.empty()) first = std::min(first, points.front().ts_ns);
  };
  take(summary.host.memory);
  for (const auto& device : summary.device_memory.devices) take(device.over_time), take(device.driver_over_time);
  for (const auto& device : summary.allocators.devices) take(device.held_over_time);
  return first;
}

}  // namespace

Plot memory_plot(const analyze::Summary& summary) {
  Plot plot{.title = "Memory over time"};
  plot.x = {"time since the first reading", "s"};
  plot.y = {"memory in use", "B"};
  const std::int64_t begin = first_moment(summary);
  std::string capacities;
  for (const analyze::DeviceMemory& device : summary.device_memory.devices) {
    const std::string name = device.name.empty() ? "device" : device.name;
    add_memory(plot, name + ", by the driver (all programs)", device.driver_over_time, begin);
    add_memory(plot, name + ", by allocations of the run", device.over_time, begin);
    if (device.total_bytes > 0)
      capacities += fmt::format("; {} has {}", name, base::human_bytes(static_cast<double>(device.total_bytes)));
  }
  for (const analyze::DeviceAllocator& device : summary.allocators.devices)
    add_memory(plot, (device.name.empty() ? "device" : device.name) + ", held by the allocator", device.held_over_time,
               begin);
  add_memory(plot, "processes, resident", summary.host.memory, begin);
  plot.note = "measured" + capacities;
  if (plot.series.size() == 1) plot.note = plot.series.front().name + "; " + plot.note;
  return plot;
}

}  // namespace llmprof::pictures
