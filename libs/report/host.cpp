#include "report/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/human.h"
#include "base/json.h"
#include "base/text_table.h"
#include "report/sparkline.h"
#include "report/tables.h"

namespace llmprof::report {
namespace {

using analyze::Host;
using analyze::MemoryGain;
using analyze::ProcessUsage;
using base::Align;
using base::Json;
using base::maybe;
using base::text_or_null;
using base::TextTable;

constexpr std::string_view kNoReadings =
    "No process was read from outside: recorded with --no-host, or too short to be read, or not by llmprof record.";

std::string bytes_cell(std::optional<std::int64_t> bytes) {
  return bytes ? base::human_bytes(static_cast<double>(*bytes)) : "-";
}
std::string signed_bytes(std::int64_t bytes) {
  return (bytes < 0 ? "-" : "+") + base::human_bytes(std::abs(static_cast<double>(bytes)));
}
std::string count_cell(std::int64_t count) { return base::human_count(static_cast<double>(count)); }

std::string short_name(const ProcessUsage& process) {
  const std::string name = process.name.substr(process.name.rfind('/') + 1);
  return fmt::format("{} {}", name.empty() ? "(unknown)" : name, process.pid);
}

std::optional<std::int64_t> sum(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string process_table(const Page& page) {
  std::vector<ProcessUsage> processes = page.summary.host.processes;
  std::stable_sort(processes.begin(), processes.end(), [](const ProcessUsage& a, const ProcessUsage& b) {
    return a.user_ns + a.system_ns > b.user_ns + b.system_ns;
  });
  TextTable table({{"process", Align::kLeft, true},
                   {"CPU"},
                   {"sys %"},
                   {"core %"},
                   {"peak RSS"},
                   {"threads"},
                   {"faults"},
                   {"major"},
                   {"read"},
                   {"written"},
                   {"switches"}});
  for (std::size_t i = 0; i < std::min(processes.size(), page.top); ++i) {
    const ProcessUsage& p = processes[i];
    const std::int64_t cpu = p.user_ns + p.system_ns;
    const auto switches = sum(p.voluntary_switches, p.involuntary_switches);
    table.add({short_name(p), time_cell(cpu), cpu > 0 ? percent_cell(share(p.system_ns, cpu)) : "-",
               percent_cell(share(cpu, p.wall_ns)), bytes_cell(p.peak_rss_bytes), std::to_string(p.most_threads),
               count_cell(p.minor_faults), count_cell(p.major_faults), bytes_cell(p.read_bytes),
               bytes_cell(p.written_bytes), switches ? count_cell(*switches) : "-"});
  }
  std::string out = table.render(kWidth);
  if (processes.size() > page.top)
    out += fmt::format("  {} more processes; --top shows more.\n", processes.size() - page.top);
  return out +
         wrapped(
             "sys %: of its CPU time. core %: CPU time, of one core over its life. faults: page faults; major: those "
             "that waited for storage, which read and written refer to.");
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
std::vector<MemoryGain> shown_gains(const Page& page) {
  const Host& host = page.summary.host;
  const std::int64_t least = host.peak ? host.peak->highest.rss_bytes / 1000 : 0;
  std::vector<MemoryGain> gains;
  for (const MemoryGain& gain : host.gains) {
    const bool large = std::max(std::abs(gain.gained_bytes), std::abs(gain.largest_bytes)) >= least;
    if (large && shown(page, gain.stage)) gains.push_back(gain);
  }
  std::stable_sort(gains.begin(), gains.end(), [](const MemoryGain& a, const MemoryGain& b) {
    return std::abs(a.gained_bytes) > std::abs(b.gained_bytes);
  });
  return gains;
}

std::string gain_table(const Page& page, const Style& style) {
  const std::vector<MemoryGain> gains = shown_gains(page);
  if (gains.empty()) return "";
  TextTable table({{"range", Align::kLeft, true}, {"stage", Align::kLeft}, {"ranges"}, {"gained"}, {"most by one"}});
  for (std::size_t i = 0; i < std::min(gains.size(), page.top); ++i) {
    const MemoryGain& gain = gains[i];
    table.add({gain.range, gain.stage.empty() ? "-" : gain.stage, std::to_string(gain.ranges),
               signed_bytes(gain.gained_bytes), signed_bytes(gain.largest_bytes)});
  }
  std::string out = style.heading("Memory gained by ranges") + table.render(kWidth);
  if (gains.size() > page.top) out += fmt::format("  {} more ranges; --top shows more.\n", gains.size() - page.top);
  return out + wrapped(
                   "gained: resident memory of the process at the end less at the begin, without what ranges inside "
                   "gained. Ranges shorter than the time between two readings count for the range around them. Gains "
                   "below a thousandth of the peak are in the JSON only.");
}

Json process_json(const ProcessUsage& p) {
  return {{"name", text_or_null(p.name)},
          {"arguments", text_or_null(p.arguments)},
          {"pid", p.pid},
          {"begin_ns", p.begin_ns},
          {"wall_ns", p.wall_ns},
          {"user_ns", p.user_ns},
          {"system_ns", p.system_ns},
          {"core_share", share(p.user_ns + p.system_ns, p.wall_ns)},
          {"peak_rss_bytes", p.peak_rss_bytes},
          {"minor_faults", p.minor_faults},
          {"major_faults", p.major_faults},
          {"most_threads", p.most_threads},
          {"read_bytes", maybe(p.read_bytes)},
          {"written_bytes", maybe(p.written_bytes)},
          {"voluntary_switches", maybe(p.voluntary_switches)},
          {"involuntary_switches", maybe(p.involuntary_switches)}};
}

Json moment_json(const analyze::MemoryMoment& moment) {
  Json open = Json::array();
  for (const analyze::OpenRanges& ranges : moment.open_ranges) {
    open.push_back({{"pid", ranges.pid}, {"names", ranges.names}});
  }
  return {{"ts_ns", moment.ts_ns}, {"rss_bytes", moment.rss_bytes}, {"open_ranges", open}};
}

Json peak_json(const std::optional<analyze::MemoryPeak>& peak) {
  if (!peak) return nullptr;
  Json out = moment_json(peak->highest);
  out["nearly"] = moment_json(peak->nearly);
  return out;
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

std::string host_section(const Page& page, const Style& style) {
  const Host& host = page.summary.host;
  if (host.processes.empty()) return style.heading("Processes") + wrapped(kNoReadings);
  std::string title = "Processes, seen from outside";
  if (host.readings_per_s) title += fmt::format(" {} times a second", base::three_digits(*host.readings_per_s));
  return style.heading(title) + process_table(page) + memory_lines(page) + gain_table(page, style);
}

Json host_json(const Page& page) {
  const Host& host = page.summary.host;
  Json out;
  out["readings_per_s"] = maybe(host.readings_per_s);
  out["processes"] = Json::array();
  for (const ProcessUsage& process : host.processes) out["processes"].push_back(process_json(process));
  out["memory"] = Json::array();
  for (const analyze::MemoryPoint& point : host.memory) {
    out["memory"].push_back({{"ts_ns", point.ts_ns}, {"rss_bytes", point.rss_bytes}});
  }
  out["peak"] = peak_json(host.peak);
  out["gains"] = Json::array();
  for (const MemoryGain& gain : host.gains) {
    if (!shown(page, gain.stage)) continue;
    out["gains"].push_back({{"range", text_or_null(gain.range)},
                            {"stage", text_or_null(gain.stage)},
                            {"ranges", gain.ranges},
                            {"gained_bytes", gain.gained_bytes},
                            {"largest_bytes", gain.largest_bytes}});
  }
  out["why"] = host.processes.empty() ? Json(kNoReadings) : Json(nullptr);
  return out;
}

}  // namespace llmprof::report
