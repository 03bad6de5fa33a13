#pragma once
// A row of a query result, by column name.

#include <optional>
#include <string>

#include "trace/run.h"

namespace llmprof::analyze {

struct RowView {
  const trace::ResultTable& table;
  std::size_t row = 0;

  const trace::Value& value(std::string_view column) const { return table.rows[row][table.column(column)]; }
  std::string text(std::string_view column) const { return value(column).text; }
  std::int64_t integer(std::string_view column) const { return value(column).as_int(); }
  double real(std::string_view column) const { return value(column).as_double(); }
  std::optional<std::int64_t> maybe_integer(std::string_view column) const { return value(column).maybe_int(); }
  std::optional<double> maybe_real(std::string_view column) const { return value(column).maybe_double(); }
};

}  // namespace llmprof::analyze
