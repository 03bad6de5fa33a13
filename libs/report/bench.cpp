#include "report/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/human.h"
#include "base/text_table.h"
#include "report/page.h"
#include "report/sections.h"
#include "report/table.h"
#include "trace/loss.h"

namespace llmprof::report {
namespace {

using analyze::BenchChange;
using analyze::BenchComparison;
using analyze::BenchPoint;
using analyze::ColumnDescription;
using base::fields_json;
using base::Json;

// The measured points of one operator: what they have in common stands above their table, what varies is a column.
struct BenchGroup {
  std::string op;
  std::string fixed;                       // "bfloat16, n=4096 k=4096, cold cache, cublaslt"
  std::vector<ColumnDescription> columns;  // keys of rows; those of sizes begin with "axes."
  std::vector<std::size_t> members;        // of the points that were given
  Json rows = Json::array();               // the fields of the members
};

// In the order of columns, with the words that stand above the table where they do not vary.
struct Property {
  const char* key;
  const char* words;
  bool column = true;  // where it varies; a method is too long for one
};
constexpr Property kProperties[] = {{"type", "{}"},           {"name", "for {}"},      {"cache", "{} cache"},
                                    {"implementation", "{}"}, {"method", "{}", false}, {"timer", "timed by {}"}};

bool varies(const Json& rows, const std::string& key) {
  return std::ranges::any_of(rows, [&](const Json& row) { return value_at(row, key) != value_at(rows[0], key); });
}

// Sizes that vary become columns; the others are returned: "n=4096 k=4096".
std::string add_axes(BenchGroup& group) {
  std::string sizes;
  for (const auto& [axis, first] : group.rows[0]["axes"].items()) {
    const std::string key = "axes." + axis;
    if (varies(group.rows, key)) {
      group.columns.push_back({.key = key, .title = base::printable(axis), .format = "count"});
    } else {
      sizes += fmt::format("{}{}={}", sizes.empty() ? "" : " ", axis, base::to_line(first));
    }
  }
  return sizes;
}

void describe(BenchGroup& group) {
  const auto add_fixed = [&](const std::string& text) {
    if (!text.empty()) group.fixed += (group.fixed.empty() ? "" : ", ") + text;
  };
  for (const Property& property : kProperties) {
    const std::string key = property.key;
    if (!varies(group.rows, key)) {
      const std::string same = text_at(group.rows[0], key);
      if (!same.empty()) add_fixed(fmt::format(fmt::runtime(property.words), same));
    } else if (property.column) {
      group.columns.push_back(*analyze::find_description("llmprof.bench.points[]")->column(key));
      group.columns.back().format = "word";  // an empty cell where a point has none
    }
    if (key == "type") add_fixed(add_axes(group));
  }
}

// Operators in the order of their first point; those without a measured point are left out.
std::vector<BenchGroup> groups_of(const std::vector<BenchPoint>& points) {
  std::vector<BenchGroup> groups;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!points[i].measured()) continue;
    auto group = std::ranges::find(groups, points[i].op, &BenchGroup::op);
    if (group == groups.end()) group = groups.insert(groups.end(), BenchGroup{.op = points[i].op, .fixed = {}});
    group->members.push_back(i);
    group->rows.push_back(fields_json(points[i]));
  }
  for (BenchGroup& group : groups) describe(group);
  return groups;
}

// "gemm bfloat16 m=1 n=4096 k=4096, hot, cublaslt (q_proj)"
std::string title_of(const BenchPoint& point) {
  std::string text = fmt::format("{} {} {}", point.op, point.type, point.sizes());
  if (point.cache == "hot") text += ", hot";
  if (!point.implementation.empty()) text += ", " + point.implementation;
  return point.name.empty() ? text : fmt::format("{} ({})", text, point.name);
}

// Half the confidence interval, of the median: the larger half, as it need not be even.
std::string interval_of(const BenchPoint& point) {
  if (!point.low_ns || !point.high_ns || *point.median_ns <= 0) return "-";
  const double half = std::max(*point.high_ns - *point.median_ns, *point.median_ns - *point.low_ns);
  return fmt::format("±{:.1f} %", 100 * half / *point.median_ns);
}

std::string flags_of(const BenchPoint& point) {
  std::string text = point.noisy ? "noisy" : "";
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  if (point.throttled > 0) add(fmt::format("{} throttled", point.throttled));
  if (!point.reason.empty()) add("*");
  return text;
}

// What a reader must know of measured points, each once; a few, as they may differ in a number only.
std::string remarks(const BenchGroup& group) {
  constexpr std::size_t kShown = 2;
  std::vector<std::string> seen;
  for (const Json& row : group.rows) {
    const std::string reason = text_at(row, "reason");
    if (!reason.empty() && std::ranges::find(seen, reason) == seen.end()) seen.push_back(reason);
  }
  std::string out;
  for (std::size_t i = 0; i < std::min(seen.size(), kShown); ++i) out += wrapped("* " + seen[i]);
  if (seen.size() > kShown)
    out += wrapped(fmt::format("* and {} like these: --json has them all", seen.size() - kShown));
  return out;
}

std::string group_text(const BenchGroup& group, std::string_view path, const Json& rows, const Flags& flags,
                       const Style& style) {
  const Json nothing;
  return style.heading(group.op) + wrapped(group.fixed) +
         TableText(nothing, flags).rows(path, rows, SIZE_MAX, group.columns);
}

std::string measured_text(BenchGroup group, const std::vector<BenchPoint>& points, const Style& style) {
  Flags flags;
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    const BenchPoint& point = points[group.members[i]];
    Json& row = group.rows[i];
    row["interval"] = interval_of(point);
    row["memory"] = point.tensor_bytes + point.workspace_bytes;
    row["flags"] = flags_of(point);
    if (row["flags"] != "") flags.insert("flags");
  }
  // Names need the width more: with them, memory is in JSON and CSV only.
  if (std::ranges::find(group.columns, "name", &ColumnDescription::key) != group.columns.end()) flags.insert("names");
  return group_text(group, "llmprof.bench.points[]#measured", group.rows, flags, style) + remarks(group);
}

std::string not_measured(const BenchPage& page, const Style& style) {
  std::string out;
  for (const bool skipped : {true, false}) {
    std::vector<std::pair<std::string, std::string>> by_reason;  // the reason, the points
    for (const BenchPoint& point : page.results.points) {
      if (point.measured() || (point.status == "skipped") != skipped) continue;
      auto same = std::ranges::find(by_reason, point.reason, [](const auto& entry) { return entry.first; });
      if (same == by_reason.end()) same = by_reason.insert(same, {point.reason, ""});
      same->second += wrapped(title_of(point));
    }
    if (!by_reason.empty()) out += style.heading(skipped ? "Skipped" : "Failed");
    for (const auto& [reason, points] : by_reason)
      out += points + wrapped(reason.empty() ? "no reason is known" : reason, 6);
  }
  return out;
}

std::string head(const BenchPage& page, const Style& style) {
  std::string out = style.heading(page.run).substr(1);
  std::string command;
  for (const std::string& word : page.info.command) command += (command.empty() ? "" : " ") + word;
  out += wrapped(command);
  out += wrapped(fmt::format("{}, llmprof {}, a benchmark: it holds no kernels and no stages.", page.info.created,
                             page.info.llmprof_version));
  for (const analyze::DeviceCard& device : page.results.devices) {
    std::string line =
        fmt::format("{}: {}, {} {}", device.kind, device.name, device.units, device.kind == "cpu" ? "cores" : "units");
    if (device.cache_bytes > 0)
      line += ", last-level cache " + base::human_bytes(static_cast<double>(device.cache_bytes));
    if (!device.driver.empty()) line += ", driver " + device.driver;
    out += wrapped(line);
  }
  out += wrapped(environment_line(page.info.environment));
  for (const analyze::Loss& loss : page.results.losses) out += style.warning(wrapped(loss_words(loss)));
  return out;
}

// What the percentages refer to.
std::string denominators(const BenchPage& page) {
  std::vector<std::string> roofs;
  bool any = false;
  for (const BenchPoint& point : page.results.points) {
    any = any || point.measured();
    if (!point.measured() || point.denominator.empty()) continue;
    if (std::ranges::find(roofs, point.denominator) == roofs.end()) roofs.push_back(point.denominator);
  }
  if (!any) return "";
  const Json nothing;
  const std::string out = "\n" + TableText(nothing).notes("llmprof.bench.points[]#measured");
  if (roofs.empty()) return out + wrapped("Of roof: unknown, this device has no known peaks: llmprof roofline.");
  return out +
         wrapped(fmt::format("Of roof: the least time at these peaks, over the time: {}.", fmt::join(roofs, "; ")));
}

std::string summary(const BenchComparison& comparison) {
  const auto count = [&](analyze::BenchVerdict verdict) {
    return std::ranges::count(comparison.changes, verdict, &BenchChange::verdict);
  };
  if (!comparison.ratio) return wrapped("No point was measured in both runs.");
  return wrapped(fmt::format("Of {}: B is faster in {}, slower in {}, the same in {}. Geometric mean of B / A: {:.3f}.",
                             counted(static_cast<std::int64_t>(comparison.changes.size()), "point"),
                             count(analyze::BenchVerdict::kFaster), count(analyze::BenchVerdict::kSlower),
                             count(analyze::BenchVerdict::kSame), *comparison.ratio));
}

std::string changes_text(const BenchComparison& comparison, const Style& style) {
  if (comparison.changes.empty()) return "";
  std::vector<BenchPoint> points;
  for (const BenchChange& change : comparison.changes) points.push_back(change.a);
  std::string out;
  for (const BenchGroup& group : groups_of(points)) {
    Json rows = Json::array();
    for (const std::size_t member : group.members) {
      const BenchChange& change = comparison.changes[member];
      Json row = described_fields("llmprof.bench_compare.points[]", change);
      row["interval"] = fmt::format("{:.3f}-{:.3f}", change.low, change.high);
      rows.push_back(std::move(row));
    }
    out += group_text(group, "llmprof.bench_compare.points[]", rows, {}, style);
  }
  return out + "\n" +
         wrapped(fmt::format(
             "Median times; B / A with its 95 % confidence interval; p of a Mann-Whitney test, adjusted for {} "
             "comparisons. Faster or slower: p < 0.05 and more than {} % apart.",
             comparison.changes.size(), base::three_digits(100 * comparison.threshold)));
}

std::string only(const std::vector<BenchPoint>& points, std::string_view where, const Style& style) {
  if (points.empty()) return "";
  std::string out = style.heading(fmt::format("Only in {}", where));
  for (const BenchPoint& point : points) out += wrapped(title_of(point));
  return out;
}

}  // namespace

std::string to_text(const BenchPage& page, bool colour) {
  const Style style{colour};
  std::string out = head(page, style);
  for (BenchGroup& group : groups_of(page.results.points))
    out += measured_text(std::move(group), page.results.points, style);
  return out + denominators(page) + not_measured(page, style);
}

std::string to_text(const BenchComparePage& page, bool colour) {
  const Style style{colour};
  const BenchComparison& comparison = page.comparison;
  std::string out = style.heading("Benchmarks compared").substr(1);
  out += wrapped("A: " + page.a) + wrapped("B: " + page.b) + summary(comparison);
  for (const std::string& text : comparison.confounders) out += style.warning(wrapped("Beware: " + text + "."));
  out += changes_text(comparison, style);
  if (!comparison.not_compared.empty()) out += style.heading("Not compared");
  for (const auto& [point, why] : comparison.not_compared) out += wrapped(title_of(point)) + wrapped(why, 6);
  return out + only(comparison.only_a, "A", style) + only(comparison.only_b, "B", style);
}

Json bench_points_json(const std::vector<BenchPoint>& points) {
  Json all = fields_json(points);
  for (Json& point : all) point["time"] = point["median_ns"].is_null() ? Json(nullptr) : Json(point);
  return described("llmprof.bench.points[]", all);
}

void to_json(const BenchPage& page, Json& out) {
  out.update(described("llmprof.bench", {{"run", run_facts(page.run, page.info)},
                                         {"losses", fields_json(page.results.losses)},
                                         {"devices", fields_json(page.results.devices)}}));
  out["points"] = bench_points_json(page.results.points);
}

void to_json(const BenchComparePage& page, Json& out) {
  Json all = fields_json(page.comparison);
  all["a"] = page.a, all["b"] = page.b;
  out.update(described("llmprof.bench_compare", all));
}

std::string to_csv(const BenchPage& page) {
  Json rows = fields_json(page.results.points);
  std::vector<std::string> keys = {"op", "type"};
  for (Json& row : rows) {
    for (const auto& [axis, value] : row["axes"].items()) {
      if (std::ranges::find(keys, axis) == keys.end()) keys.push_back(axis);
      row[axis] = value;
    }
  }
  for (const char* key : {"name", "cache", "implementation", "method", "kernels", "timer", "status", "reason"})
    keys.emplace_back(key);
  for (const auto& column : analyze::find_description("llmprof.bench.points[].time")->columns)
    keys.push_back(column.key);
  const std::vector<ColumnDescription>& columns = analyze::find_description("llmprof.bench.points[]")->columns;
  for (auto column = std::ranges::find(columns, "flops", &ColumnDescription::key); column->key != "begin_ns";
       ++column) {
    if (column->key != "buffer_sets") keys.push_back(column->key);
  }
  return to_csv(keys, rows);
}

namespace {

constexpr std::size_t kMostLines = 8;  // more cannot be told apart

bool is_axis(const ColumnDescription& column) { return column.key.starts_with("axes."); }

Scale scale_of(const std::set<std::int64_t>& values) {
  const std::int64_t least = *values.begin(), most = *values.rbegin();
  return values.size() > 2 && least > 0 && most / least >= 8 ? Scale::kLog2 : Scale::kLinear;
}

// What tells a line from its neighbours: every varying column but the axis, and not the name, which follows from them.
std::string series_name(const BenchGroup& group, const Json& row, const ColumnDescription& across) {
  std::string name;
  for (const ColumnDescription& column : group.columns) {
    if (column.key == across.key || column.key == "name" || column.key == "timer") continue;
    name += fmt::format("{}{}{}", name.empty() ? "" : ", ", is_axis(column) ? column.title + " " : "",
                        text_at(row, column.key));
  }
  return name.empty() ? "measured" : name;
}

PlotPoint point_at(const Json& row, const ColumnDescription& across, const char* time) {
  const Json& value = value_at(row, across.key);
  return {value.is_number() ? value.get<double>() : 0, row[time].get<double>() * 1e-9};
}

Plot empty_plot(const BenchGroup& group, const ColumnDescription& across, const std::string& device) {
  const std::string axis = across.key.substr(across.key.find('.') + 1);
  return {.title = fmt::format("{}: time by {}", group.op, axis),
          .note = device + (device.empty() || group.fixed.empty() ? "" : ", ") + group.fixed,
          .x = {.title = axis, .unit = "", .scale = Scale::kLinear, .prefixes = false},
          .y = {.title = "median time", .unit = "s", .scale = Scale::kLog10, .prefixes = true},
          .series = {},
          .guides = {}};
}

// The floor of each point, as a line without marks, where a single line leaves room for it.
void add_floor(const BenchGroup& group, const ColumnDescription& across, Plot& plot) {
  if (plot.series.size() != 1) return;
  Series floor{.name = "floor at the peaks", .points = {}, .mark = Mark::kLine};
  for (const Json& row : group.rows) {
    if (!row["floor_ns"].is_null()) floor.points.push_back(point_at(row, across, "floor_ns"));
  }
  std::ranges::sort(floor.points, {}, &PlotPoint::x);
  if (floor.points.size() > 1) plot.series.push_back(std::move(floor));
}

std::optional<Plot> plot_of(const BenchGroup& group, const ColumnDescription& across, const std::string& device) {
  Plot plot = empty_plot(group, across, device);
  std::vector<std::string> order;
  std::map<std::string, Series> lines;
  std::set<std::int64_t> values;
  for (const Json& row : group.rows) {
    const std::string name = series_name(group, row, across);
    if (!lines.contains(name)) order.push_back(name);
    Series& line = lines[name];
    line.name = name;
    line.points.push_back(point_at(row, across, "median_ns"));
    values.insert(static_cast<std::int64_t>(line.points.back().x));
  }
  plot.x.scale = scale_of(values);
  std::size_t left_out = 0;
  for (const std::string& name : order) {
    Series& line = lines[name];
    if (line.points.size() < 2) continue;
    std::ranges::stable_sort(line.points, {}, &PlotPoint::x);
    if (plot.series.size() == kMostLines) {
      ++left_out;
    } else {
      plot.series.push_back(std::move(line));
    }
  }
  if (plot.series.empty()) return std::nullopt;
  if (left_out > 0) plot.note += fmt::format(", the first {} of {} lines", kMostLines, kMostLines + left_out);
  add_floor(group, across, plot);
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
    for (const ColumnDescription& column : group.columns) {
      if (!is_axis(column)) continue;
      if (auto plot = plot_of(group, column, device))
        plots.push_back({file_part(group.op + "-" + column.key.substr(column.key.find('.') + 1)), std::move(*plot)});
    }
  }
  return plots;
}

}  // namespace llmprof::report
