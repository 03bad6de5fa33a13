// The tables of a run as they are: as CSV, as one JSON document, as Parquet. (SQLite has a file of its own.)
#include <cmath>
#include <utility>

#include "base/strings.h"
#include "base/json.h"
#include "base/version.h"
#include "exporters/output_file.h"
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
const Exporter kJson{"json", "all tables in one JSON document", ".json", json::write};

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

}  // namespace llmprof::exporters
