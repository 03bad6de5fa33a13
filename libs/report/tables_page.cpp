// docs/format/json.md: what every object of the JSON is, from the descriptions.

#include <fmt/format.h>

#include "analyze/tables.h"
#include "report/table.h"

namespace llmprof::report {
namespace {

constexpr std::string_view kBegin = "<!-- tables: made from libs/analyze/tables by `make docs` -->";
constexpr std::string_view kEnd = "<!-- /tables -->";

std::string_view unit_of(const analyze::ColumnDescription& column) {
  const std::string& format = column.format;
  if (format == "ns" || format == "s") return format;
  if (format == "bytes" || format == "gain") return "B";
  if (format == "percent") return "fraction";
  if (format == "flag") return "true, false";
  if (format == "rows" || format == "list") return "list";
  if (format == "object" || format == "json" || format == "quantile") return "object";
  if (!column.unit.empty()) return column.unit;
  return is_text(column) ? "text" : "number";
}

std::string reference() {
  std::string text;
  for (const analyze::TableDescription& table : analyze::table_descriptions()) {
    if (table.path.find('#') != std::string::npos) continue;  // a view of another
    text += fmt::format("## {}\n\n", table.path);
    if (!table.meaning.empty()) text += table.meaning + "\n\n";
    text += "| key | unit | meaning |\n|---|---|---|\n";
    for (const analyze::ColumnDescription& column : table.columns) {
      if (column.format == "terminal") continue;
      text += fmt::format("| `{}` | {}{} | {} |\n", column.key, unit_of(column),
                          column.of.empty() ? "" : fmt::format(" of `{}`", column.of), column.meaning);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string with_current_descriptions(std::string page) {
  const std::size_t begin = page.find(kBegin), end = page.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return page;
  return page.replace(begin, end - begin, fmt::format("{}\n\n{}", kBegin, reference()));
}

}  // namespace llmprof::report
