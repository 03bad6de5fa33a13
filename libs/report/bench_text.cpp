#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/text_table.h"
#include "report/bench.h"
#include "report/bench_group.h"
#include "report/environment_line.h"
#include "report/layout.h"
#include "report/page.h"
#include "trace/loss.h"

namespace llmprof::report {
namespace {

using analyze::BenchPoint;
using base::Align;
using base::TextTable;

std::string time_text(const BenchPoint& point) { return base::human_ns(*point.median_ns); }

// Half the confidence interval, of the median: the larger half, as it need not be even.
std::string interval_cell(const BenchPoint& point) {
  if (!point.low_ns || !point.high_ns || *point.median_ns <= 0) return "-";
  const double half = std::max(*point.high_ns - *point.median_ns, *point.median_ns - *point.low_ns);
  return fmt::format("±{:.1f} %", 100 * half / *point.median_ns);
}

std::string rate_cell(const std::optional<double>& rate) { return rate ? base::human_count(*rate) : "-"; }

std::string memory_cell(const BenchPoint& point) {
  return base::human_bytes(static_cast<double>(point.tensor_bytes + point.workspace_bytes));
}

std::string flags(const BenchPoint& point) {
  std::string text = point.noisy ? "noisy" : "";
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  if (point.throttled > 0) add(fmt::format("{} throttled", point.throttled));
  if (!point.reason.empty()) add("*");
  return text;
}

std::string measured_table(const BenchGroup& group) {
  std::vector<TextTable::Column> columns;
  for (const BenchColumn& column : group.columns) {
    columns.push_back({base::printable(column.title), column.text ? Align::kLeft : Align::kRight, column.elastic});
  }
  const bool flagged = std::ranges::any_of(group.measured, [](const BenchPoint* p) { return !flags(*p).empty(); });
  // Names need the room more: with them, memory is in JSON and CSV only.
  const bool memory = std::ranges::none_of(group.columns, [](const BenchColumn& column) { return column.elastic; });
  for (const char* title : {"time", "95 %"}) columns.push_back({title});
  if (memory) columns.push_back({"memory"});
  for (const char* title : {"FLOP/s", "B/s", "of roof"}) columns.push_back({title});
  columns.push_back({"bound", Align::kLeft});
  if (flagged) columns.push_back({"", Align::kLeft});
  TextTable table(std::move(columns));
  for (const BenchPoint* point : group.measured) {
    std::vector<std::string> cells;
    for (const BenchColumn& column : group.columns) cells.push_back(base::printable(cell_of(*point, column)));
    cells.push_back(time_text(*point));
    cells.push_back(interval_cell(*point));
    if (memory) cells.push_back(memory_cell(*point));
    cells.push_back(rate_cell(point->flops_per_s));
    cells.push_back(rate_cell(point->bytes_per_s));
    cells.push_back(base::human_percent(point->of_roof));
    cells.push_back(point->bound.empty() ? "-" : base::printable(point->bound));
    if (flagged) cells.push_back(flags(*point));
    table.add(std::move(cells));
  }
  return table.render(kWidth);
}

// What a reader must know of measured points, each once; a few, as they may differ in a number only.
std::string remarks(const BenchGroup& group) {
  constexpr std::size_t kShown = 2;
  std::vector<std::string> seen;
  for (const BenchPoint* point : group.measured) {
    if (!point->reason.empty() && std::ranges::find(seen, point->reason) == seen.end()) seen.push_back(point->reason);
  }
  std::string out;
  for (std::size_t i = 0; i < std::min(seen.size(), kShown); ++i) out += wrapped("* " + base::printable(seen[i]), 2);
  if (seen.size() > kShown)
    out += wrapped(fmt::format("* and {} like these: --json has them all", seen.size() - kShown), 2);
  return out;
}

std::string group_text(const BenchGroup& group, const Style& style) {
  std::string out = style.heading(base::printable(group.op));
  if (!group.fixed.empty()) out += wrapped(base::printable(group.fixed));
  return out + measured_table(group) + remarks(group);
}

std::string rest_text(const BenchPage& page, const Style& style) {
  std::string out;
  for (const char* status : {"skipped", "failed"}) {
    std::vector<std::pair<std::string, std::vector<const BenchPoint*>>> by_reason;
    for (const BenchPoint& point : page.results.points) {
      if (point.measured() || (point.status != status && !(point.status != "skipped" && status[0] == 'f'))) continue;
      const auto same = std::ranges::find(by_reason, point.reason, [](const auto& entry) { return entry.first; });
      if (same == by_reason.end()) {
        by_reason.push_back({point.reason, {&point}});
      } else {
        same->second.push_back(&point);
      }
    }
    if (by_reason.empty()) continue;
    out += style.heading(status[0] == 's' ? "Skipped" : "Failed");
    for (const auto& [reason, points] : by_reason) {
      for (const BenchPoint* point : points) out += wrapped(base::printable(title_of(*point)), 2);
      out += wrapped(base::printable(reason.empty() ? "no reason is known" : reason), 6);
    }
  }
  return out;
}

std::string head(const BenchPage& page, const Style& style) {
  std::string out = style.heading(page.run).substr(1);
  std::string command;
  for (const std::string& word : page.info.command) command += (command.empty() ? "" : " ") + word;
  if (!command.empty()) out += wrapped(base::printable(command));
  out += wrapped(fmt::format("{}, llmprof {}, a benchmark: it holds no kernels and no stages.", page.info.created,
                             page.info.llmprof_version));
  for (const analyze::DeviceCard& device : page.results.devices) {
    std::string line =
        fmt::format("{}: {}, {} {}", device.kind, device.name, device.units, device.kind == "cpu" ? "cores" : "units");
    if (device.cache_bytes > 0)
      line += ", last-level cache " + base::human_bytes(static_cast<double>(device.cache_bytes));
    if (!device.driver.empty()) line += ", driver " + device.driver;
    out += wrapped(base::printable(line));
  }
  out += wrapped(environment_line(page.info.environment));
  for (const analyze::Loss& loss : page.results.losses) {
    out += style.warning(wrapped(base::printable(trace::describe({.name = loss.name,
                                                                  .severity = loss.severity,
                                                                  .count = loss.count,
                                                                  .unit = loss.unit,
                                                                  .meaning = loss.meaning,
                                                                  .remedy = loss.remedy,
                                                                  .detail = loss.detail}))));
  }
  return out;
}

// What the percentages are of.
std::string denominators(const BenchPage& page) {
  std::vector<std::string> roofs;
  for (const BenchPoint& point : page.results.points) {
    if (!point.measured() || point.denominator.empty()) continue;
    if (std::ranges::find(roofs, point.denominator) == roofs.end()) roofs.push_back(point.denominator);
  }
  const bool any = std::ranges::any_of(page.results.points, [](const BenchPoint& p) { return p.measured(); });
  if (!any) return "";
  std::string out =
      "\n" + wrapped(
                 "Time: median of the samples; 95 %: confidence interval of the median. Memory, where it is "
                 "shown: tensors and workspace of one call. FLOP/s and B/s: FLOPs and bytes that the "
                 "operator needs by calculation, over the time.");
  if (roofs.empty()) return out + wrapped("Of roof: unknown, this device has no known peaks: llmprof roofline.");
  std::string text;
  for (const std::string& roof : roofs) text += (text.empty() ? "" : "; ") + roof;
  return out +
         wrapped(base::printable(fmt::format("Of roof: the least time at these peaks, over the time: {}.", text)));
}

}  // namespace

std::string to_text(const BenchPage& page, bool colour) {
  const Style style{colour};
  std::string out = head(page, style);
  for (const BenchGroup& group : groups_of(page.results.points)) out += group_text(group, style);
  return out + denominators(page) + rest_text(page, style);
}

}  // namespace llmprof::report
