#include "trace/user_engine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/file.h"
#include "trace/parquet_copy.h"
#include "trace/result_reader.h"
#include "trace/views.h"

namespace llmprof::trace {
namespace {

// Chunks of one engine handed to another; vectors are shared, not copied.
class StreamSource : public ChunkSource {
 public:
  StreamSource(const DuckDbApi& api, Stream& stream) : api_(api), stream_(stream) {}

  void describe(duckdb_bind_info info) override {
    for (idx_t i = 0; i < stream_.names().size(); ++i) {
      duckdb_logical_type type = api_.column_logical_type(&stream_.result(), i);
      api_.bind_add_result_column(info, stream_.names()[i].c_str(), type);
      api_.destroy_logical_type(&type);
    }
  }

  Result<void> next(duckdb_data_chunk chunk) override {
    LLMPROF_LET(duckdb_data_chunk from, stream_.next());
    const idx_t count = from != nullptr ? api_.chunk_size(from) : 0;
    for (idx_t i = 0; from != nullptr && i < stream_.names().size(); ++i) {
      api_.reference_vector(api_.chunk_vector(chunk, i), api_.chunk_vector(from, i));
    }
    api_.set_chunk_size(chunk, count);
    rows_ += static_cast<std::int64_t>(count);
    return {};
  }

  std::int64_t rows() const { return rows_; }

 private:
  const DuckDbApi& api_;
  Stream& stream_;
  std::int64_t rows_ = 0;
};

std::string lock_statement(const std::vector<OpenFile>& files) {
  std::string paths;
  for (const OpenFile& file : files) paths += (paths.empty() ? "" : ", ") + sql_literal(file.path);
  return fmt::format("SET allowed_paths = [{}]; SET enable_external_access = false; SET lock_configuration = true",
                     paths);
}

// Table functions a query may call: they make rows from their arguments, or describe the tables. The others read files,
// take raw addresses or switch things on (enable_logging is a table function, and no setting forbids it).
constexpr std::array<std::string_view, 14> kTableFunctions{"duckdb_columns",
                                                           "duckdb_functions",
                                                           "duckdb_keywords",
                                                           "duckdb_tables",
                                                           "duckdb_types",
                                                           "duckdb_views",
                                                           "generate_series",
                                                           "json_each",
                                                           "json_tree",
                                                           "pragma_version",
                                                           "pragma_table_info",
                                                           "range",
                                                           "repeat",
                                                           "unnest"};

// What the parser makes of the statement, asked before it is prepared: preparing runs the bind step of functions.
struct Parsed {
  bool is_select = false;
  std::string table_functions;  // joined by ','
};
Result<Parsed> parse(const Connection& connection, const std::string& sql) {
  if (sql.find('\0') != std::string::npos)
    return Error{ErrorCode::kCorruptInput, "SQL: the statement holds a NUL byte", ""};
  LLMPROF_LET(Stream stream,
              connection.stream(fmt::format(
                  "SELECT j->>'$.error', array_to_string(json_extract_string(j, '$..function.function_name'), ',') "
                  "FROM (SELECT json_serialize_sql({}) AS j)",
                  sql_literal(sql))));
  const RowReader reader(connection, stream);
  LLMPROF_LET(duckdb_data_chunk chunk, stream.next());
  std::vector<Value> row(2);
  if (chunk != nullptr && connection.api().chunk_size(chunk) == 1) reader.read(chunk, 0, row);
  return Parsed{row[0].text == "false", row[1].text};
}

Result<void> allow_functions(std::string_view names) {
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    if (std::ranges::find(kTableFunctions, name) == kTableFunctions.end()) {
      return Error{ErrorCode::kPermission, fmt::format("SQL: table function {} is not allowed", name),
                   "queries read the tables of this run and nothing else"};
    }
    names.remove_prefix(std::min(names.size(), name.size() + 1));
  }
  return {};
}

}  // namespace

// A statement that the parser cannot show us is no SELECT, or not SQL: it is only asked what is wrong with it.
Result<Stream> UserEngine::open(const std::string& sql, Types types) const {
  LLMPROF_LET(const Parsed parsed, parse(connection_, sql));
  LLMPROF_TRY(allow_functions(parsed.table_functions));
  return connection_.stream(sql, parsed.is_select ? Trust::kUser : Trust::kRefused, types);
}

Result<UserEngine> UserEngine::create(const std::vector<OpenFile>& files, const std::string& memory) {
  LLMPROF_LET(Database database, Database::open({{"memory_limit", memory}}));
  LLMPROF_LET(Connection connection, database.connect());
  LLMPROF_LET(const ColumnsOfTables columns, check_parquet(connection, files));
  for (const std::string& view : view_statements(files, columns)) LLMPROF_TRY(connection.run(view));
  LLMPROF_TRY(connection.run(lock_statement(files)));
  return UserEngine(std::move(database), std::move(connection));
}

Result<void> UserEngine::each(const std::string& sql, const ColumnSink& columns, const RowSink& row) const {
  LLMPROF_LET(Stream stream, open(sql, Types::kPlain));
  columns(stream.names());
  const RowReader reader(connection_, stream);
  std::vector<Value> values;
  while (true) {
    LLMPROF_LET(duckdb_data_chunk chunk, stream.next());
    if (chunk == nullptr) return {};
    for (std::size_t i = 0; i < connection_.api().chunk_size(chunk); ++i) {
      reader.read(chunk, i, values);
      if (!row(values)) return {};
    }
  }
}

Result<std::int64_t> UserEngine::to_parquet(const std::string& sql, const std::string& file) const {
  LLMPROF_LET(Stream stream, open(sql, Types::kAll));
  LLMPROF_LET(const Database outside, Database::open({{"threads", "1"}}));
  LLMPROF_LET(const Connection writer, outside.connect());
  LLMPROF_TRY(register_chunk_source(writer));
  StreamSource source(connection_.api(), stream);
  const std::string beside = fmt::format("{}.{}.tmp", file, ::getpid());
  LLMPROF_TRY(copy_to_parquet(writer, source, beside));
  if (::rename(beside.c_str(), file.c_str()) != 0) {
    const Error error = base::errno_error(ErrorCode::kIo, file, errno);
    ::unlink(beside.c_str());
    return error;
  }
  return source.rows();
}

}  // namespace llmprof::trace
