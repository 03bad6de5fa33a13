#pragma once
// Rows of a query result as structs whose fields are named as the columns are.

#include <algorithm>
#include <array>
#include <concepts>
#include <optional>
#include <string>
#include <vector>

#include "analyze/questions.h"
#include "base/fields.h"
#include "trace/run.h"

namespace llmprof::analyze {

namespace detail {
inline void read(const trace::Value& value, std::string& out) { out = value.text; }
inline void read(const trace::Value& value, double& out) { out = value.as_double(); }
template <std::integral T>  // and bool
void read(const trace::Value& value, T& out) {
  out = static_cast<T>(value.as_int());
}
template <class T>
concept Plain = std::integral<T> || std::floating_point<T> || std::same_as<T, std::string>;
template <Plain T>
void read(const trace::Value& value, std::optional<T>& out) {
  if (value.is_null()) return out.reset();
  read(value, out.emplace());
}
}  // namespace detail

// Fields that no column has the name of, such as those that are computed from the others, keep their defaults. Every
// column needs its field: a number that is asked for and not read is a mistake.
template <class T>
Result<std::vector<T>> rows_as(const trace::ResultTable& table) {
  const auto index_of = [&](std::string_view name) {
    return static_cast<std::size_t>(std::ranges::find(table.columns, name) - table.columns.begin());
  };
  for (const std::string& column : table.columns) {
    if (std::ranges::find(base::kFieldNames<T>, column) == base::kFieldNames<T>.end())
      return Error{ErrorCode::kInternal, "no field for the column " + column, ""};
  }
  std::array<std::size_t, base::kFieldCount<T>> columns{};
  std::ranges::transform(base::kFieldNames<T>, columns.begin(), index_of);
  std::vector<T> out(table.rows.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::size_t field_number = 0;
    base::for_each_field(out[i], [&](std::string_view, auto& field) {
      const std::size_t column = columns[field_number++];
      if (column == table.columns.size()) return;
      if constexpr (requires { detail::read(table.rows[i][column], field); })
        detail::read(table.rows[i][column], field);
    });
  }
  return out;
}

template <class T>
Result<std::vector<T>> ask_rows(const trace::Run& run, std::string_view name) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, name));
  return rows_as<T>(table);
}
// The one number that a statement asks for; 0 where it is NULL.
inline Result<std::int64_t> ask_number(const trace::Run& run, const std::string& sql) {
  LLMPROF_LET(const trace::ResultTable table, run.query(sql));
  return table.rows[0][0].as_int();
}
// Of a question whose answer is one row.
template <class T>
Result<T> ask_row(const trace::Run& run, std::string_view name) {
  LLMPROF_LET(std::vector<T> rows, ask_rows<T>(run, name));
  if (rows.empty()) return T{};
  return std::move(rows.front());
}

}  // namespace llmprof::analyze
