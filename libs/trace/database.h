#pragma once
// DuckDB as the rest of libs/trace sees it: a database in memory, connections, streamed results. Only libs/trace
// includes this.
// A Connection must not outlive its Database, nor a Stream its Connection. One thread per connection.

#include <duckdb.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/dynlib.h"
#include "base/result.h"
#include "trace/run.h"

namespace llmprof::trace {

// The C interface of DuckDB 1.4, loaded on first use from the library folder.
#define LLMPROF_DUCKDB_CALLS(X)                                        \
  X(create_config, duckdb_create_config)                               \
  X(set_config, duckdb_set_config)                                     \
  X(destroy_config, duckdb_destroy_config)                             \
  X(open_ext, duckdb_open_ext)                                         \
  X(close, duckdb_close)                                               \
  X(connect, duckdb_connect)                                           \
  X(disconnect, duckdb_disconnect)                                     \
  X(free, duckdb_free)                                                 \
  X(extract_statements, duckdb_extract_statements)                     \
  X(extract_statements_error, duckdb_extract_statements_error)         \
  X(destroy_extracted, duckdb_destroy_extracted)                       \
  X(prepare_extracted_statement, duckdb_prepare_extracted_statement)   \
  X(prepare_error, duckdb_prepare_error)                               \
  X(destroy_prepare, duckdb_destroy_prepare)                           \
  X(nparams, duckdb_nparams)                                           \
  X(prepared_statement_type, duckdb_prepared_statement_type)           \
  X(prepared_column_count, duckdb_prepared_statement_column_count)     \
  X(prepared_column_name, duckdb_prepared_statement_column_name)       \
  X(prepared_column_type, duckdb_prepared_statement_column_type)       \
  X(pending_prepared_streaming, duckdb_pending_prepared_streaming)     \
  X(pending_error, duckdb_pending_error)                               \
  X(execute_pending, duckdb_execute_pending)                           \
  X(destroy_pending, duckdb_destroy_pending)                           \
  X(query, duckdb_query)                                               \
  X(result_error, duckdb_result_error)                                 \
  X(destroy_result, duckdb_destroy_result)                             \
  X(fetch_chunk, duckdb_fetch_chunk)                                   \
  X(column_count, duckdb_column_count)                                 \
  X(column_name, duckdb_column_name)                                   \
  X(column_type, duckdb_column_type)                                   \
  X(column_logical_type, duckdb_column_logical_type)                   \
  X(create_logical_type, duckdb_create_logical_type)                   \
  X(create_enum_type, duckdb_create_enum_type)                         \
  X(destroy_logical_type, duckdb_destroy_logical_type)                 \
  X(decimal_scale, duckdb_decimal_scale)                               \
  X(decimal_internal_type, duckdb_decimal_internal_type)               \
  X(destroy_data_chunk, duckdb_destroy_data_chunk)                     \
  X(chunk_vector, duckdb_data_chunk_get_vector)                        \
  X(chunk_size, duckdb_data_chunk_get_size)                            \
  X(set_chunk_size, duckdb_data_chunk_set_size)                        \
  X(vector_size, duckdb_vector_size)                                   \
  X(vector_data, duckdb_vector_get_data)                               \
  X(vector_validity, duckdb_vector_get_validity)                       \
  X(ensure_validity_writable, duckdb_vector_ensure_validity_writable)  \
  X(reference_vector, duckdb_vector_reference_vector)                  \
  X(create_table_function, duckdb_create_table_function)               \
  X(destroy_table_function, duckdb_destroy_table_function)             \
  X(table_function_set_name, duckdb_table_function_set_name)           \
  X(table_function_add_parameter, duckdb_table_function_add_parameter) \
  X(table_function_set_bind, duckdb_table_function_set_bind)           \
  X(table_function_set_init, duckdb_table_function_set_init)           \
  X(table_function_set_function, duckdb_table_function_set_function)   \
  X(register_table_function, duckdb_register_table_function)           \
  X(bind_get_parameter, duckdb_bind_get_parameter)                     \
  X(bind_add_result_column, duckdb_bind_add_result_column)             \
  X(bind_set_bind_data, duckdb_bind_set_bind_data)                     \
  X(bind_set_cardinality, duckdb_bind_set_cardinality)                 \
  X(function_get_bind_data, duckdb_function_get_bind_data)             \
  X(function_set_error, duckdb_function_set_error)                     \
  X(get_uint64, duckdb_get_uint64)                                     \
  X(destroy_value, duckdb_destroy_value)
LLMPROF_API(DuckDbApi, LLMPROF_DUCKDB_CALLS)
#undef LLMPROF_DUCKDB_CALLS

// The folder of our own libraries: $LLMPROF_LIBDIR, else ../lib/llmprof beside the folder of the running program.
std::string library_folder();

// Loads it once per process; the same answer ever after.
const Result<DuckDbApi>& duckdb_api();

class Connection;

class Database {
 public:
  using Setting = std::pair<const char*, std::string>;
  // In memory; extensions are never installed or loaded, nothing is spilled to disk.
  static Result<Database> open(std::initializer_list<Setting> settings = {});
  Database(Database&& other) noexcept : api_(other.api_), handle_(std::exchange(other.handle_, nullptr)) {}
  Database& operator=(Database&& other) noexcept;
  ~Database();
  Result<Connection> connect() const;

 private:
  Database(const DuckDbApi* api, duckdb_database handle) : api_(api), handle_(handle) {}
  const DuckDbApi* api_;
  duckdb_database handle_;
};

// The rows of a SELECT, 2048 at a time.
class Stream {
 public:
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&&) = delete;
  ~Stream();
  // The next chunk, nullptr at the end. It is valid until the next call.
  Result<duckdb_data_chunk> next();
  duckdb_result& result() { return result_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  friend class Connection;
  explicit Stream(const DuckDbApi* api) : api_(api) {}
  const DuckDbApi* api_;
  duckdb_prepared_statement statement_ = nullptr;
  duckdb_result result_{};
  duckdb_data_chunk chunk_ = nullptr;
  std::vector<std::string> names_;
};

enum class Trust : std::uint8_t {
  kOwn,
  kUser,     // must be a SELECT
  kRefused,  // never runs: only the reason is wanted
};
enum class Types : std::uint8_t {
  kAll,    // as the engine has them
  kPlain,  // numbers, BOOLEAN and VARCHAR; dates, lists and everything else are cast to VARCHAR
};

class Connection {
 public:
  Connection(Connection&& other) noexcept : api_(other.api_), handle_(std::exchange(other.handle_, nullptr)) {}
  Connection& operator=(Connection&& other) noexcept;
  ~Connection();
  const DuckDbApi& api() const { return *api_; }
  duckdb_connection handle() const { return handle_; }

  Result<void> run(const std::string& sql) const;  // statements without a result
  Result<Stream> stream(const std::string& sql, Trust trust = Trust::kOwn, Types types = Types::kAll) const;

 private:
  friend class Database;
  Connection(const DuckDbApi* api, duckdb_connection handle) : api_(api), handle_(handle) {}
  Result<void> prepare(Stream& stream, const std::string& sql, Trust trust) const;
  std::string with_plain_types(const Stream& stream, const std::string& sql) const;
  const DuckDbApi* api_;
  duckdb_connection handle_;
};

}  // namespace llmprof::trace
