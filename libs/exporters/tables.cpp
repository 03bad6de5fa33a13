// The tables of a run as they are: as CSV, as one JSON document, as Parquet. (SQLite has a file of its own.)

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/json.h"
#include "base/strings.h"
#include "base/version.h"
#include "exporters/output_file.h"
#include "exporters/selection.h"
#include "exporters/table_list.h"

namespace llmprof::exporters {

// A CSV file per table (RFC 4180, a header line, UTF-8). Text that a spreadsheet would take for a formula is marked
// with a quote in front (base/strings.h); NULL is an empty cell.
namespace csv {
namespace {

std::string line_of(const std::vector<trace::Value>& row) {
  std::string line;
  for (const trace::Value& value : row) {
    if (&value != row.data()) line += ',';
    line += value.type == trace::Value::Type::kText ? base::csv_text(value.text) : plain_text(value);
  }
  return line + "\n";
}

std::string header_of(const std::vector<std::string>& names) {
  std::string line;
  for (const std::string& name : names) line += (line.empty() ? "" : ",") + base::csv_text(name);
  return line + "\n";
}

Result<Written> write(const Request& request) {
  LLMPROF_LET(const std::vector<ExportTable> tables, tables_to_write(request));
  LLMPROF_TRY(make_folder(request.output));
  Written written;
  TableWriter writer(request, tables);
  const auto write_table = [&](const ExportTable& table) -> Result<void> {
    written.files.push_back(request.output + "/" + table.name + ".csv");
    LLMPROF_LET(OutputFile file, OutputFile::create(written.files.back()));
    LLMPROF_TRY(writer.each_row(
        table, [&](const std::vector<std::string>& names) { file.write(header_of(names)); },
        [&](const std::vector<trace::Value>& row) {
          file.write(line_of(row));
          return !file.failed();
        }));
    return file.finish();
  };
  LLMPROF_TRY(writer.each_table(write_table));
  written.records = writer.rows();
  return written;
}

}  // namespace
}  // namespace csv

extern const Exporter kCsv;
const Exporter kCsv{"csv", "a CSV file per table", "", csv::write};

// All tables in one JSON document: what a column is stands beside its values, a row is an array.
//   {"schema": "llmprof.tables", "schema_version": 1, …, "tables": {"kernel": {"row": …, "columns": […], "rows": [[…],
//   …]}}}
namespace json {
namespace {

using base::Json;

std::string head_of(const Request& request) {
  const trace::RunInfo& info = request.run.info();
  Json head{{"schema", "llmprof.tables"},
            {"schema_version", 1},
            {"llmprof_version", std::string(base::version())},
            {"run",
             {{"created", info.created},
              {"llmprof_version", info.llmprof_version},
              {"format_version", info.format_version},
              {"source", info.source},
              {"clock", info.clock},
              {"command", info.command}}}};
  std::string text = base::to_text(head);
  text.resize(text.rfind("\n}"));  // the object stays open for the tables
  return text + ",\n  \"tables\": {";
}

Json describe(const ExportTable& table, const std::vector<std::string>& names) {
  Json columns = Json::array();
  for (const std::string& name : names) {
    const trace::Column* column = table.table == nullptr ? nullptr : table.table->find(name);
    Json one{{"name", name}};
    if (column != nullptr) one["unit"] = std::string(column->unit), one["meaning"] = std::string(column->meaning);
    columns.push_back(std::move(one));
  }
  return columns;
}

std::string cell(const trace::Value& value) {
  using Type = trace::Value::Type;
  if (value.type == Type::kText) return base::to_line(Json(value.text));
  if (value.type == Type::kNull || (value.type == Type::kDouble && !std::isfinite(value.real))) return "null";
  return plain_text(value);
}

std::string line_of(const std::vector<trace::Value>& row) {
  std::string line = "[";
  for (const trace::Value& value : row) line += (&value == row.data() ? "" : ",") + cell(value);
  return line + "]";
}

std::string begin_table(const ExportTable& table, const std::vector<std::string>& names) {
  const std::string row = table.table == nullptr ? "" : std::string(table.table->row);
  return "\n    " + base::to_line(Json(table.name)) + ": {\"row\": " + base::to_line(Json(row)) +
         ", \"columns\": " + base::to_line(describe(table, names)) + ", \"rows\": [";
}

Result<Written> write(const Request& request) {
  LLMPROF_LET(const std::vector<ExportTable> tables, tables_to_write(request));
  LLMPROF_LET(OutputFile file, OutputFile::create(request.output));
  TableWriter writer(request, tables);
  file.write(head_of(request));
  const auto write_table = [&](const ExportTable& table) -> Result<void> {
    if (&table != tables.data()) file.write(",");
    bool first = true;
    LLMPROF_TRY(writer.each_row(
        table, [&](const std::vector<std::string>& names) { file.write(begin_table(table, names)); },
        [&](const std::vector<trace::Value>& row) {
          file.write((std::exchange(first, false) ? "\n      " : ",\n      ") + line_of(row));
          return !file.failed();
        }));
    file.write("]}");
    return {};
  };
  LLMPROF_TRY(writer.each_table(write_table));
  file.write("\n  }\n}\n");
  LLMPROF_TRY(file.finish());
  return Written{{request.output}, writer.rows(), {}};
}

}  // namespace
}  // namespace json

extern const Exporter kJson;
const Exporter kJson{"json", "all tables in one JSON document", ".json", json::write, false, ".json.gz"};

// A Parquet file per table, of the selected rows: the same columns as in the run, one file each.
namespace parquet {
namespace {

Result<Written> write(const Request& request) {
  LLMPROF_LET(const std::vector<ExportTable> tables, tables_to_write(request));
  LLMPROF_TRY(make_folder(request.output));
  Written written;
  TableWriter writer(request, tables);
  const auto write_table = [&](const ExportTable& table) -> Result<void> {
    written.files.push_back(request.output + "/" + table.name + ".parquet");
    LLMPROF_LET(const std::int64_t rows, request.run.user_query_to_parquet(table.sql, written.files.back()));
    open_to_readers(written.files.back());
    written.records += rows;
    return {};
  };
  LLMPROF_TRY(writer.each_table(write_table));
  return written;
}

}  // namespace
}  // namespace parquet

extern const Exporter kParquet;
const Exporter kParquet{"parquet", "a Parquet file per table", "", parquet::write};

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
  if (value.type == Type::kInt) return fmt::format("{}", value.integer);
  if (value.type == Type::kBool) return value.integer != 0 ? "true" : "false";
  if (value.type == Type::kDouble) return fmt::format("{}", value.real);  // shortest that reads back to the same number
  return value.type == Type::kText ? value.text : "";
}

}  // namespace llmprof::exporters
