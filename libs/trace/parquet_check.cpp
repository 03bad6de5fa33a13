#include "trace/parquet_check.h"

#include <fmt/format.h>

#include "trace/result_reader.h"
#include "trace/schema.h"

namespace llmprof::trace {
namespace {

Error foreign(const std::string& path, const std::string& what) {
  return Error{ErrorCode::kCorruptInput, fmt::format("{}: not written by llmprof: {}", path, what),
               "record or import the run again"};
}

std::string path_list(const std::vector<OpenFile>& files) {
  std::string list;
  for (const OpenFile& file : files) list += (list.empty() ? "" : ", ") + sql_literal(file.path);
  return "[" + list + "]";
}

// Rows of a metadata question, by file.
using Facts = std::map<std::string, std::vector<std::vector<Value>>>;
Result<Facts> ask(const Connection& connection, const std::string& sql) {
  LLMPROF_LET(Stream stream, connection.stream(sql, Trust::kOwn, Types::kPlain));
  const RowReader reader(connection, stream);
  Facts facts;
  std::vector<Value> row;
  while (true) {
    LLMPROF_LET(duckdb_data_chunk chunk, stream.next());
    if (chunk == nullptr) return facts;
    for (std::size_t i = 0; i < connection.api().chunk_size(chunk); ++i) {
      reader.read(chunk, i, row);
      facts[row[0].text].push_back(row);
    }
  }
}

// The first row is the root; the rest are (file, name, type, children).
Result<std::set<std::string, std::less<>>> known_columns(const OpenFile& file,
                                                         const std::vector<std::vector<Value>>& rows) {
  const Table& table = *find_table(file.listed.table);
  std::set<std::string, std::less<>> known;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::string& name = rows[i][1].text;
    if (rows[i][3].as_int() != 0) return foreign(file.path, fmt::format("column {} is nested", name));
    const Column* column = table.find(name);
    if (column == nullptr) continue;  // of a newer llmprof
    if (rows[i][2].text != sql_type(*column)) {
      return foreign(file.path, fmt::format("column {} is {}, not {}", name, rows[i][2].text, sql_type(*column)));
    }
    if (!known.insert(name).second) return foreign(file.path, fmt::format("column {} is there twice", name));
  }
  if (known.empty()) return foreign(file.path, fmt::format("it has no column of table {}", table.name));
  return known;
}

Result<void> check_storage(const OpenFile& file, const Facts& sizes, const Facts& codecs) {
  const auto size = sizes.find(file.path);
  if (size == sizes.end() || size->second[0][1].as_int() != file.listed.rows) {
    return foreign(file.path, fmt::format("its row count is not {}", file.listed.rows));
  }
  const auto codec = codecs.find(file.path);
  for (std::size_t i = 0; codec != codecs.end() && i < codec->second.size(); ++i) {
    const std::string& name = codec->second[i][1].text;
    if (name != "ZSTD" && name != "UNCOMPRESSED") return foreign(file.path, "compression " + name);
  }
  return {};
}

// Whatever is wrong with the metadata is wrong with the file.
Error as_damage(const Error& error) {
  return Error{ErrorCode::kCorruptInput, "the run's tables cannot be read: " + error.message,
               "record or import the run again"};
}

}  // namespace

std::string_view sql_type(const Column& column) {
  switch (column.type) {
    case ColumnType::kInt64:
      return "BIGINT";
    case ColumnType::kInt32:
      return "INTEGER";
    case ColumnType::kDouble:
      return "DOUBLE";
    case ColumnType::kBool:
      return "BOOLEAN";
    case ColumnType::kName:
      break;
  }
  return "VARCHAR";
}

Result<ColumnsOfTables> check_parquet(const Connection& connection, const std::vector<OpenFile>& files) {
  ColumnsOfTables columns;
  if (files.empty()) return columns;
  const std::string list = path_list(files);
  auto schemas = ask(
      connection,
      "SELECT file_name, name, coalesce(duckdb_type, ''), coalesce(num_children, 0) FROM parquet_schema(" + list + ")");
  auto sizes = ask(connection, "SELECT file_name, num_rows FROM parquet_file_metadata(" + list + ")");
  auto codecs = ask(connection, "SELECT DISTINCT file_name, compression FROM parquet_metadata(" + list + ")");
  for (auto* facts : {&schemas, &sizes, &codecs}) {
    if (!*facts) return as_damage(facts->error());
  }
  for (const OpenFile& file : files) {
    LLMPROF_LET(auto known, known_columns(file, (*schemas)[file.path]));
    LLMPROF_TRY(check_storage(file, *sizes, *codecs));
    const auto [entry, first] = columns.try_emplace(file.listed.table, known);
    if (!first && entry->second != known)
      return foreign(file.path, "its columns differ from the other parts of the table");
  }
  return columns;
}

}  // namespace llmprof::trace
