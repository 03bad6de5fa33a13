#include "trace/schema.h"

#include <algorithm>
#include <array>

#include "trace/rows.h"

namespace llmprof::trace {

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

}  // namespace llmprof::trace
