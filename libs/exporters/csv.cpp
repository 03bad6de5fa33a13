// A CSV file per table (RFC 4180, a header line, UTF-8). Text that a spreadsheet would take for a formula is marked
// with a quote in front (base/strings.h); NULL is an empty cell.
#include "base/strings.h"

#include "exporters/output_file.h"
#include "exporters/table_list.h"

namespace llmprof::exporters {
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

Result<void> write_table(const Request& request, const ExportTable& table, const std::string& path,
                         TableProgress& progress) {
  LLMPROF_LET(OutputFile file, OutputFile::create(path));
  bool going = true;
  LLMPROF_TRY(request.run.user_query_each(
      table.sql, [&](const std::vector<std::string>& names) { file.write(header_of(names)); },
      [&](const std::vector<trace::Value>& row) {
        file.write(line_of(row));
        going = progress.row();
        return going && !file.failed();
      }));
  if (!going) return Error{ErrorCode::kInterrupted, "interrupted while writing " + path, ""};
  return file.finish();
}

Result<Written> write(const Request& request) {
  LLMPROF_LET(const std::vector<ExportTable> tables, tables_to_write(request));
  LLMPROF_TRY(make_folder(request.output));
  Written written;
  TableProgress progress(request, tables.size());
  for (const ExportTable& table : tables) {
    if (!progress.begin_table()) return Error{ErrorCode::kInterrupted, "interrupted while writing tables", ""};
    written.files.push_back(request.output + "/" + table.name + ".csv");
    LLMPROF_TRY(write_table(request, table, written.files.back(), progress));
  }
  written.records = progress.rows();
  return written;
}

}  // namespace
}  // namespace csv

extern const Exporter kCsv;
const Exporter kCsv{"csv", "a CSV file per table", "", csv::write};

}  // namespace llmprof::exporters
