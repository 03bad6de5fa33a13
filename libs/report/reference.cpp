#include "report/reference.h"

#include <fmt/format.h>

#include "analyze/measures/measures.h"
#include "analyze/rules/rule.h"
#include "report/table.h"

namespace llmprof::report {
namespace {

// What stands behind the mark `begin` and before the mark `end` replaced; unchanged if the page lacks one of them.
std::string renewed_between(std::string page, std::string_view begin, std::string_view end, const std::string& text) {
  const std::size_t from = page.find(begin), to = page.find(end);
  if (from == std::string::npos || to == std::string::npos || to < from) return page;
  return page.replace(from + begin.size(), to - from - begin.size(), "\n\n" + text);
}

std::string_view unit_of(const analyze::ColumnDescription& column) {
  const std::string& format = column.format;
  if (format == "ns" || format == "s") return format;
  if (format == "gain_ns") return "ns";
  if (format == "bytes" || format == "gain") return "B";
  if (format == "percent") return "fraction";
  if (format == "flag") return "true, false";
  if (format == "rows" || format == "list") return "list";
  if (format == "object" || format == "json" || format == "quantile") return "object";
  if (!column.unit.empty()) return column.unit;
  return is_text(column) ? "text" : "number";
}

std::string table_text(const analyze::TableDescription& table) {
  std::string text = fmt::format("## {}\n\n", table.path);
  if (!table.meaning.empty()) text += table.meaning + "\n\n";
  text += "| key | unit | meaning |\n|---|---|---|\n";
  for (const analyze::ColumnDescription& column : table.columns) {
    if (column.terminal) continue;
    text += fmt::format("| `{}` | {}{} | {} |\n", column.key, unit_of(column),
                        column.of.empty() ? "" : fmt::format(" of `{}`", column.of), column.meaning);
  }
  return text + "\n";
}

}  // namespace

std::string with_current_rules(std::string page) {
  std::string text;
  for (const analyze::Rule* rule : analyze::rules())
    text += fmt::format("### {}\n\n{}. {}\n\n", rule->name, rule->title, rule->meaning);
  return renewed_between(std::move(page), "<!-- rules: made from the registry by `make docs` -->", "<!-- /rules -->",
                         text);
}

std::string with_current_measures(std::string page) {
  std::string text = "| measure | unit | better | source | meaning | formula |\n|---|---|---|---|---|---|\n";
  for (const analyze::MeasureKind& kind : analyze::measure_kinds()) {
    const std::string_view unit = kind.unit == "1" ? "fraction" : kind.unit.empty() ? "number" : kind.unit;
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", kind.name, unit, json_name(kind.better), kind.source,
                        kind.meaning, kind.formula);
  }
  return renewed_between(std::move(page), "<!-- measures: made from the catalogue by `make docs` -->",
                         "<!-- /measures -->", text + "\n");
}

// "<!-- tables of llmprof.diff: made from …": of the documents whose schema begins so; without a schema, the report's.
std::string with_current_descriptions(std::string page) {
  constexpr std::string_view kOf = "<!-- tables of ", kMade = ": made from libs/analyze/tables by `make docs` -->";
  std::string_view schema;
  if (const std::size_t of = page.find(kOf); of != std::string::npos) {
    schema = std::string_view(page).substr(of + kOf.size());
    schema = schema.substr(0, schema.find(':'));
  }
  std::string text = schema.empty() ? table_text(*analyze::find_description("llmprof.report")) : "";
  for (const analyze::TableDescription& table : analyze::table_descriptions()) {
    const bool of_report = !table.path.starts_with("llmprof.") || table.path.starts_with("llmprof.explain");
    const bool wanted = schema.empty() ? of_report : table.path.starts_with(schema);
    if (wanted && table.path.find('#') == std::string::npos) text += table_text(table);  // not views of others
  }
  const std::string begin =
      schema.empty() ? fmt::format("<!-- tables{}", kMade) : fmt::format("{}{}{}", kOf, schema, kMade);
  return renewed_between(std::move(page), begin, "<!-- /tables -->", text);
}

}  // namespace llmprof::report
