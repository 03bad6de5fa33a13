#include "trace/parquet_copy.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace llmprof::trace {
namespace {

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
