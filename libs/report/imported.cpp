#include "report/imported.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "importers/importer.h"
#include "report/tables.h"

namespace llmprof::report {
namespace {

using base::Json;

std::string ns_cell(const std::optional<double>& ns) { return ns ? base::human_ns(*ns) : "-"; }

}  // namespace

bool is_imported(const Page& page) { return !page.summary.imported.sources.empty(); }

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

}  // namespace llmprof::report
