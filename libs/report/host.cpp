#include "report/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/human.h"
#include "report/sparkline.h"
#include "report/tables.h"

namespace llmprof::report {
namespace {

using analyze::Host;
using base::Json;

std::string bytes_cell(std::optional<std::int64_t> bytes) {
  return bytes ? base::human_bytes(static_cast<double>(*bytes)) : "-";
}
std::string open_text(const std::vector<analyze::OpenRanges>& processes) {
  if (processes.empty()) return "no range";
  std::string text;
  for (const analyze::OpenRanges& open : processes) {
    std::string path;
    for (std::size_t i = 0; i < open.names.size(); ++i) {
      if (i > 0 && open.names[i] == open.names[i - 1]) continue;  // a stage and its step
      path += (path.empty() ? "" : " › ") + open.names[i];
    }
    if (!text.empty()) text += "; ";
    text += processes.size() > 1 ? fmt::format("in {} {}", open.pid, path) : path;
  }
  return text;
}

std::string memory_lines(const Page& page) {
  const Host& host = page.summary.host;
  if (!host.peak || host.memory.empty()) return "";
  constexpr std::size_t kColumns = 64;
  const std::int64_t begin = host.memory.front().ts_ns;
  const analyze::MemoryMoment& highest = host.peak->highest;
  const analyze::MemoryMoment& nearly = host.peak->nearly;
  std::string out = fmt::format("  memory  {}  up to {}\n",
                                sparkline(highest_in_parts(host.memory, kColumns), kColumns, page.unicode),
                                bytes_cell(highest.rss_bytes));
  out += wrapped(
      fmt::format("All processes together, resident, over {}; memory they share counts for each. Highest {} after {}; "
                  "open then: {}.",
                  time_cell(host.memory.back().ts_ns - begin), bytes_cell(highest.rss_bytes),
                  time_cell(highest.ts_ns - begin), open_text(highest.open_ranges)));
  if (nearly.ts_ns == highest.ts_ns) return out;
  return out + wrapped(fmt::format("95 % of it was there after {}; open then: {}.", time_cell(nearly.ts_ns - begin),
                                   open_text(nearly.open_ranges)));
}

// Gains that matter: a thousandth of the peak or more.
std::string gain_table(const Page& page, const Style& style, const TableText& tables) {
  const Host& host = page.summary.host;
  const std::int64_t least = host.peak ? host.peak->highest.rss_bytes / 1000 : 0;
  const auto size = [](const Json& gain, const char* key) { return std::abs(gain[key].get<std::int64_t>()); };
  Json gains = Json::array();
  for (const Json& gain : tables.report()["host"]["gains"]) {
    if (std::max(size(gain, "gained_bytes"), size(gain, "largest_bytes")) >= least) gains.push_back(gain);
  }
  if (gains.empty()) return "";
  std::stable_sort(gains.begin(), gains.end(),
                   [&](const Json& a, const Json& b) { return size(a, "gained_bytes") > size(b, "gained_bytes"); });
  constexpr std::string_view kTable = "host.gains[]";
  return style.heading(tables.title(kTable)) + tables.rows(kTable, gains) + tables.notes(kTable);
}

}  // namespace

std::vector<std::int64_t> highest_in_parts(const std::vector<analyze::MemoryPoint>& points, std::size_t columns) {
  if (points.empty() || columns == 0) return {};
  const std::int64_t begin = points.front().ts_ns;
  const std::int64_t part_ns = (points.back().ts_ns - begin) / static_cast<std::int64_t>(columns) + 1;
  std::vector<std::int64_t> highest(columns, -1);
  for (const analyze::MemoryPoint& point : points) {
    std::int64_t& value = highest[static_cast<std::size_t>((point.ts_ns - begin) / part_ns)];
    value = std::max(value, point.rss_bytes);
  }
  for (std::size_t i = 1; i < columns; ++i) {
    if (highest[i] < 0) highest[i] = highest[i - 1];
  }
  return highest;
}

std::string host_section(const Page& page, const Style& style, const TableText& tables) {
  const Host& host = page.summary.host;
  if (host.processes.empty()) return style.heading("Processes") + wrapped(kNoReadings);
  constexpr std::string_view kTable = "host.processes[]";
  std::string title = tables.title(kTable);
  if (host.readings_per_s) title += fmt::format(" {} times a second", base::three_digits(*host.readings_per_s));
  return style.heading(title) + tables.rows(kTable, tables.report()["host"]["processes"]) + tables.notes(kTable) +
         memory_lines(page) + gain_table(page, style, tables);
}

}  // namespace llmprof::report
