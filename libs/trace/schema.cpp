#include "trace/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "trace/parquet.h"
#include "trace/rows.h"

namespace llmprof::trace {
namespace {

constexpr std::string_view kBegin = "<!-- tables: made from the schema by `make docs` -->";
constexpr std::string_view kEnd = "<!-- /tables -->";

std::string order_of(const Table& table) {
  if (table.sort_by.empty()) return "Not sorted";
  return table.lane.empty() ? fmt::format("Sorted by `{}`", table.sort_by)
                            : fmt::format("Sorted by `{}`, `{}`", table.lane, table.sort_by);
}

std::string section(const Table& table) {
  std::string text =
      fmt::format("### {}\n\nOne row is {}. {}.\n\n| column | type | unit | meaning |\n|---|---|---|---|\n", table.name,
                  table.row, order_of(table));
  for (const Column& column : table.columns) {
    text += fmt::format("| `{}` | {}{} | {} | {} |\n", column.name, sql_type(column), column.nullable ? ", NULL" : "",
                        column.unit, column.meaning);
  }
  return text + "\n";
}

}  // namespace

const Column* Table::find(std::string_view column) const {
  const auto found = std::ranges::find(columns, column, &Column::name);
  return found == columns.end() ? nullptr : &*found;
}

// clang-format off
#define TABLE(Row, name, kind, lane, sort_by, row) \
  template <> const Table& table_of<Row>() { \
    using R = Row; \
    static const Table table{name, TableKind::kind, row, lane, sort_by, sizeof(R), {
#define COLUMN(type, name, unit, meaning, ...) column(&R::name, #name, unit, meaning),
#define END_TABLE(Row) }}; return table; }
#include "trace/tables.def"

std::span<const Table* const> tables() {
#define TABLE(Row, ...) &table_of<Row>(),
#define COLUMN(...)
#define END_TABLE(Row)
  static const std::array kTables{
#include "trace/tables.def"
  };
  return kTables;
}
// clang-format on

const Table* find_table(std::string_view name) {
  const auto found = std::ranges::find_if(tables(), [&](const Table* table) { return table->name == name; });
  return found == tables().end() ? nullptr : *found;
}

std::string table_reference() {
  std::string text = "## Facts\n\n";
  TableKind kind = TableKind::kFact;
  for (const Table* table : tables()) {
    if (table->kind != kind) text += "## Derived\n\n";
    kind = table->kind;
    text += section(*table);
  }
  return text;
}

std::string with_current_tables(std::string page) {
  const std::size_t begin = page.find(kBegin);
  const std::size_t end = page.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return page;
  return page.replace(begin, end - begin, fmt::format("{}\n\n{}", kBegin, table_reference()));
}

}  // namespace llmprof::trace
