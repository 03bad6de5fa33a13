#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "importers/importer.h"
#include "report/sections.h"

namespace llmprof::report {

namespace {

using base::Json;

std::string ns_cell(const std::optional<double>& ns) { return ns ? base::human_ns(*ns) : "-"; }

}  // namespace

bool is_imported(const Page& page) { return !page.summary.imported.sources.empty(); }

bool only_results(const Page& page) {
  const analyze::Summary& s = page.summary;
  const bool results = !s.requests.all.empty() || !s.imported.reported.empty();
  return is_imported(page) && results && s.coverage.kernels == 0 && s.coverage.gemms == 0 && s.stages.empty() &&
         s.imported.framework_ops.empty() && s.imported.totals.empty();
}

bool has_timeline(const Page& page) {
  const auto timeless = [](const analyze::SourceFile& source) {
    const importers::Importer* importer = importers::find_importer(source.format);
    return importer != nullptr && !importer->has_timeline;
  };
  const auto& sources = page.summary.imported.sources;
  return sources.empty() || !std::ranges::all_of(sources, timeless);
}

std::string source_lines(const Page& page) {
  std::string out;
  for (const analyze::SourceFile& source : page.summary.imported.sources) {
    out += wrapped(fmt::format("Imported from {} ({}{}, {}).", source.file, source.format,
                               source.tool.empty() ? "" : ", " + source.tool,
                               base::human_bytes(static_cast<double>(source.bytes))));
  }
  return out;
}

std::string framework_table(const Page& page, const Style& style, const TableText& tables) {
  const analyze::Imported& all = page.summary.imported;
  if (!page.stage.empty()) return "";
  const std::string table = tables.section("framework_operators[]", style);
  if (table.empty()) return "";
  return table + wrapped(fmt::format("self: without the operators inside. GPU: kernels and copies by where they were "
                                     "launched, {} of all operators together; host: {}.",
                                     base::human_ns(static_cast<double>(all.framework_device_ns)),
                                     base::human_ns(static_cast<double>(all.framework_host_ns))));
}

namespace {

// What the tool says of all rows, also of those it did not print; else the rows themselves, each time counted once:
// ranges lie over the operators in them, and operators repeat the device time of their kernels.
std::string totals_sum(const std::vector<analyze::Total>& totals) {
  double device_ns = 0, host_ns = 0, kernel_ns = 0;
  for (const analyze::Total& total : totals) {
    if (total.kind == "total") {
      return fmt::format("In all, also in rows that were not printed: {} on the GPU, {} on the host.",
                         ns_cell(total.self_device_ns), ns_cell(total.self_host_ns));
    }
    if (total.kind == "range") continue;
    host_ns += total.self_host_ns.value_or(0);
    (total.kind == "kernel" ? kernel_ns : device_ns) += total.self_device_ns.value_or(0);
  }
  return fmt::format("Self times, added up: {} on the GPU, {} on the host.",
                     base::human_ns(device_ns > 0 ? device_ns : kernel_ns),
                     host_ns > 0 ? base::human_ns(host_ns) : "unknown");
}

}  // namespace

std::string totals_table(const Page& page, const Style& style, const TableText& tables) {
  const std::vector<analyze::Total>& totals = page.summary.imported.totals;
  if (totals.empty() || !page.stage.empty()) return "";
  Json rows = Json::array();
  for (const Json& row : tables.report()["totals"]) {
    if (row["kind"] != "total") rows.push_back(row);
  }
  return style.heading(tables.title("totals[]")) + tables.rows("totals[]", rows) +
         wrapped(
             "These are sums: there is no timeline, so no stages, gaps or latencies. GPU memory: allocated less "
             "freed. " +
             totals_sum(totals));
}

namespace {

using base::Json;

bool only_counted(const Page& page) {
  for (const analyze::SourceFile& source : page.summary.imported.sources) {
    if (source.format != "ncu") return false;
  }
  return is_imported(page);
}

// Only where such counters were read: most sets do not have them.
std::string access_table(const Page& page, const TableText& tables, const Json& kernels) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < std::min(kernels.size(), page.top); ++i) {
    const Json& k = kernels[i];
    const auto known = [&](const char* key) { return !k[key].is_null(); };
    if (known("sectors_per_load") || known("sectors_per_store") || known("bank_conflicts") || known("local_share"))
      rows.push_back(k);
  }
  if (rows.empty()) return "";
  return "\n" + tables.rows("counters[]#access", rows) + tables.notes("counters[]#access");
}

}  // namespace

std::string counter_table(const Page& page, const Style& style, const TableText& tables) {
  Json kernels = tables.report()["counters"];
  if (kernels.empty() || !page.stage.empty()) return "";
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const auto& stalls = page.summary.imported.counted[i].stalls;
    if (stalls.empty() || stalls.front().warps <= 0)
      kernels[i]["most_stalls"] = nullptr;
    else
      kernels[i]["most_stalls"] = fmt::format("{} {}", stalls.front().reason, base::three_digits(stalls.front().warps));
  }
  const std::size_t shown_rows = std::min(kernels.size(), page.top);
  const std::size_t left = kernels.size() - shown_rows;
  Json top = Json::array();
  for (std::size_t i = 0; i < shown_rows; ++i) top.push_back(kernels[i]);
  std::string out = style.heading(tables.title("counters[]")) + tables.rows("counters[]#roofs", top) + "\n" +
                    tables.rows("counters[]#use", top) + access_table(page, tables, kernels);
  if (left > 0) out += fmt::format("  {} more kernels; --top shows more.\n", left);
  if (only_counted(page))
    out +=
        wrapped("There is no timeline: each kernel was run alone and repeated, and stands in the order of profiling.");
  return out + tables.notes("counters[]");
}

namespace {

std::string counter_lines(const analyze::Metrics& metrics) {
  if (!metrics.prefix_hit_rate) return "";
  return wrapped(fmt::format("Prefix cache: {:.1f} % of the tokens that were looked up were found.",
                             100 * *metrics.prefix_hit_rate));
}

std::string latency_lines(const analyze::Metrics& metrics) {
  bool between = false, since = false;
  for (const analyze::MetricHistogram& latency : metrics.latencies) (latency.between_scrapes ? between : since) = true;
  return wrapped(fmt::format(
      "Percentiles are interpolated inside the buckets of the server's histograms; the truth lies "
      "between the bounds in brackets. Counted {}.",
      between && since ? "between the scrapes, where something was counted then; else since the server started"
      : between        ? "between the first scrape and the last"
                       : "since the server started"));
}

}  // namespace

std::string metrics_section(const Page& page, const Style& style, const TableText& tables) {
  const analyze::Metrics& metrics = page.summary.metrics;
  if (metrics.values == 0) return "";
  std::string out = style.heading(metrics.known_names > 0 ? "Server metrics" : "Metrics");
  std::string text = fmt::format("{} values of {}, {} of them understood", metrics.values,
                                 counted(metrics.names, "metric"), metrics.known_names);
  if (metrics.scrapes > 0) text += fmt::format("; {}", counted(metrics.scrapes, "scrape"));
  text += metrics.time_ns       ? fmt::format(" in {}", time_cell(metrics.time_ns))
          : metrics.scrapes > 1 ? " without times: no rates"
                                : "";
  out += wrapped(text + ".");
  const auto& json = tables.report()["metrics"];
  const auto table = [&](const char* path, const char* key) {
    return json[key].empty() ? "" : tables.rows(path, json[key], SIZE_MAX);
  };
  out += table("metrics.gauges[]", "gauges") + table("metrics.counters[]", "counters") +
         (metrics.counters.empty() ? "" : counter_lines(metrics)) + table("metrics.latencies[]", "latencies") +
         (metrics.latencies.empty() ? "" : latency_lines(metrics));
  if (metrics.known_names < metrics.names) out += wrapped("All of them: llmprof query RUN \"SELECT * FROM metric\".");
  return out;
}

}  // namespace llmprof::report
