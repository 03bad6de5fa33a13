#include "exporters/table_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "exporters/selection.h"

namespace llmprof::exporters {
namespace {

constexpr std::array<std::string_view, 2> kViews{"kernel_all", "work"};

Result<bool> has_rows(const Request& request, const std::string& sql) {
  LLMPROF_LET(const trace::ResultTable found, request.run.query(fmt::format("SELECT 1 FROM ({}) LIMIT 1", sql)));
  return !found.rows.empty();
}

Error unknown_table(const std::string& name) {
  std::string known;
  for (const trace::Table* table : trace::tables()) known += (known.empty() ? "" : ", ") + std::string(table->name);
  for (const std::string_view view : kViews) known += ", " + std::string(view);
  return {ErrorCode::kUsage, fmt::format("there is no table {}", name), "tables: " + known};
}

ExportTable make(std::string_view name, const trace::Table* table, const Selection& selection) {
  if (name == "work") return {"work", nullptr, selected_work(selection)};
  if (table == nullptr) return {std::string(name), nullptr, selected_kernels(selection)};
  return {std::string(name), table, selected_rows(name, selection)};
}

}  // namespace

Result<std::vector<ExportTable>> tables_to_write(const Request& request) {
  std::vector<ExportTable> chosen;
  const bool window = request.selection.begin_ns || request.selection.end_ns;
  if (window && std::ranges::find(request.tables, "work") != request.tables.end()) {
    return Error{ErrorCode::kUsage, "the rows of work are sums over the run: they know no --window",
                 "export kernel_all, or leave --window out"};
  }
  for (const std::string& name : request.tables) {
    const trace::Table* table = trace::find_table(name);
    if (table == nullptr && std::ranges::find(kViews, name) == kViews.end()) return unknown_table(name);
    chosen.push_back(make(name, table, request.selection));
  }
  if (!request.tables.empty()) return chosen;
  for (const trace::Table* table : trace::tables()) {
    ExportTable candidate = make(table->name, table, request.selection);
    LLMPROF_LET(const bool filled, has_rows(request, candidate.sql));
    if (filled) chosen.push_back(std::move(candidate));
  }
  return chosen;
}

Result<void> TableWriter::report() {
  const double done = static_cast<double>(begun_), all = static_cast<double>(tables_.size());
  if (request_.progress({"writing tables", done, all, "tables"})) return {};
  return Error{ErrorCode::kInterrupted, "interrupted while writing tables", ""};
}

Result<void> TableWriter::each_table(const std::function<Result<void>(const ExportTable&)>& write) {
  for (const ExportTable& table : tables_) {
    LLMPROF_TRY(report());
    ++begun_;
    LLMPROF_TRY(write(table));
  }
  return {};
}

Result<void> TableWriter::each_row(const ExportTable& table, const trace::ColumnSink& head, const trace::RowSink& row) {
  Result<void> going;
  LLMPROF_TRY(request_.run.user_query_each(table.sql, head, [&](const std::vector<trace::Value>& values) {
    if ((++rows_ & 0xFFFF) == 0) going = report();
    return row(values) && going.has_value();
  }));
  return going;
}

std::string plain_text(const trace::Value& value) {
  using Type = trace::Value::Type;
  switch (value.type) {
    case Type::kNull:
      return "";
    case Type::kInt:
      return fmt::format("{}", value.integer);
    case Type::kBool:
      return value.integer != 0 ? "true" : "false";
    case Type::kDouble:
      return fmt::format("{}", value.real);  // the shortest text that reads back to the same number
    case Type::kText:
      return value.text;
  }
  return "";
}

}  // namespace llmprof::exporters
