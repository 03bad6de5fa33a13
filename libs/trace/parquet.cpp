#include "trace/parquet.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/result_reader.h"

namespace llmprof::trace {
namespace {

// COPY options of every Parquet file llmprof writes. V2 brings the delta encodings; more than zstd's default level
// gains 1 % and costs a quarter of the speed.
// Ids that point elsewhere have many distinct values, each a little above the one before: differences are smaller than
// a dictionary of them.
constexpr const char* kParquetOptions =
    "FORMAT parquet, PARQUET_VERSION V2, COMPRESSION zstd, ROW_GROUP_SIZE 122880, DICTIONARY_SIZE_LIMIT 1024";

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
  Facts facts;
  LLMPROF_TRY(read_rows(connection, stream, [&](std::vector<Value>& row) {
    facts[row[0].text].push_back(row);
    return true;
  }));
  return facts;
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

// The source is handed through SQL as its address: this function exists only in databases that run our own SQL.
void bind_source(duckdb_bind_info info) {
  const DuckDbApi& api = *duckdb_api();
  duckdb_value address = api.bind_get_parameter(info, 0);
  auto* source = reinterpret_cast<ChunkSource*>(api.get_uint64(address));
  api.destroy_value(&address);
  source->describe(info);
  api.bind_set_bind_data(info, source, nullptr);
}

void init_source(duckdb_init_info) {}  // one thread, which is the default

void next_of_source(duckdb_function_info info, duckdb_data_chunk chunk) {
  const DuckDbApi& api = *duckdb_api();
  auto* source = static_cast<ChunkSource*>(api.function_get_bind_data(info));
  if (const auto filled = source->next(chunk); !filled) {
    api.function_set_error(info, filled.error().message.c_str());
    api.set_chunk_size(chunk, 0);
  }
}

}  // namespace

std::string_view sql_type(const Column& column) {
  constexpr std::string_view kTypes[] = {"BIGINT", "INTEGER", "DOUBLE", "BOOLEAN", "VARCHAR"};
  return kTypes[static_cast<std::size_t>(column.type)];
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

Result<void> register_chunk_source(const Connection& connection) {
  const DuckDbApi& api = connection.api();
  duckdb_table_function function = api.create_table_function();
  duckdb_logical_type address = api.create_logical_type(DUCKDB_TYPE_UBIGINT);
  api.table_function_set_name(function, "llmprof_chunks");
  api.table_function_add_parameter(function, address);
  api.table_function_set_bind(function, bind_source);
  api.table_function_set_init(function, init_source);
  api.table_function_set_function(function, next_of_source);
  const bool registered = api.register_table_function(connection.handle(), function) == DuckDBSuccess;
  api.destroy_logical_type(&address);
  api.destroy_table_function(&function);
  if (!registered) return Error{ErrorCode::kInternal, "the SQL engine refuses the row reader", ""};
  return {};
}

Result<void> copy_to_parquet(const Connection& connection, ChunkSource& source, const std::string& path) {
  const auto written =
      connection.run(fmt::format("COPY (SELECT * FROM llmprof_chunks({}::UBIGINT)) TO {} ({})",
                                 reinterpret_cast<std::uintptr_t>(&source), sql_literal(path), kParquetOptions));
  if (!written) {
    ::unlink(path.c_str());
    return Error{ErrorCode::kIo, fmt::format("{}: cannot write: {}", path, written.error().message), ""};
  }
  ::chmod(path.c_str(), 0600);
  return {};
}

}  // namespace llmprof::trace
