// All tables in one JSON document: what a column is stands beside its values, a row is an array.
//   {"schema": "llmprof.tables", "schema_version": 1, …, "tables": {"kernel": {"row": …, "columns": […], "rows": [[…],
//   …]}}}
#include "base/json.h"

#include <cmath>

#include "base/version.h"
#include "exporters/output_file.h"
#include "exporters/table_list.h"

namespace llmprof::exporters {
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

Result<void> write_table(const Request& request, const ExportTable& table, OutputFile& file, TableProgress& progress) {
  bool first = true, going = true;
  LLMPROF_TRY(request.run.user_query_each(
      table.sql,
      [&](const std::vector<std::string>& names) {
        const std::string row = table.table == nullptr ? "" : std::string(table.table->row);
        file.write("\n    " + base::to_line(Json(table.name)) + ": {\"row\": " + base::to_line(Json(row)) +
                   ", \"columns\": " + base::to_line(describe(table, names)) + ", \"rows\": [");
      },
      [&](const std::vector<trace::Value>& row) {
        file.write((first ? "\n      " : ",\n      ") + line_of(row));
        first = false;
        going = progress.row();
        return going && !file.failed();
      }));
  file.write("]}");
  if (!going) return Error{ErrorCode::kInterrupted, "interrupted while writing tables", ""};
  return {};
}

Result<Written> write(const Request& request) {
  LLMPROF_LET(const std::vector<ExportTable> tables, tables_to_write(request));
  LLMPROF_LET(OutputFile file, OutputFile::create(request.output));
  TableProgress progress(request, tables.size());
  file.write(head_of(request));
  for (const ExportTable& table : tables) {
    if (!progress.begin_table()) return Error{ErrorCode::kInterrupted, "interrupted while writing tables", ""};
    if (&table != tables.data()) file.write(",");
    LLMPROF_TRY(write_table(request, table, file, progress));
  }
  file.write("\n  }\n}\n");
  LLMPROF_TRY(file.finish());
  return Written{{request.output}, progress.rows(), {}};
}

}  // namespace
}  // namespace json

extern const Exporter kJson;
const Exporter kJson{"json", "all tables in one JSON document", ".json", json::write};

}  // namespace llmprof::exporters
