#include "trace/parquet_writer.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

namespace llmprof::trace {
namespace {

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// What the table function walks through.
struct Scan {
  const DuckDbApi* api;
  const RowBatch* batch;
  std::size_t at = 0;
};

// The values of one column for `count` rows, into a vector of the engine.
class ColumnFill {
 public:
  ColumnFill(const DuckDbApi& api, duckdb_vector vector, const std::byte* const* rows, std::size_t count)
      : api_(api), vector_(vector), rows_(rows), count_(count), data_(api.vector_data(vector)) {}

  template <class T>
  void plain(std::size_t offset) {
    auto* out = static_cast<T*>(data_);
    for (std::size_t i = 0; i < count_; ++i) out[i] = load<T>(rows_[i] + offset);
  }

  void nulls(std::size_t present_offset) {
    for (std::size_t i = 0; i < count_; ++i) {
      if (!load<bool>(rows_[i] + present_offset)) set_null(i);
    }
  }

  template <class Code>
  void names(std::size_t offset, const std::vector<std::uint32_t>& codes) {
    auto* out = static_cast<Code*>(data_);
    for (std::size_t i = 0; i < count_; ++i) {
      const auto name = load<Name>(rows_[i] + offset);
      out[i] = name.id != 0 ? static_cast<Code>(codes[name.id]) : 0;
      if (name.id == 0) set_null(i);
    }
  }

 private:
  void set_null(std::size_t row) {
    if (validity_ == nullptr) {
      api_.ensure_validity_writable(vector_);
      validity_ = api_.vector_validity(vector_);
    }
    validity_[row / 64] &= ~(std::uint64_t{1} << (row % 64));
  }

  const DuckDbApi& api_;
  duckdb_vector vector_;
  const std::byte* const* rows_;
  std::size_t count_;
  void* data_;
  std::uint64_t* validity_ = nullptr;
};

void fill(ColumnFill& out, const Column& column, const RowBatch::Dictionary& dictionary) {
  switch (column.type) {
    case ColumnType::kInt64: out.plain<std::int64_t>(column.offset); break;
    case ColumnType::kInt32: out.plain<std::int32_t>(column.offset); break;
    case ColumnType::kDouble: out.plain<double>(column.offset); break;
    case ColumnType::kBool: out.plain<bool>(column.offset); break;
    case ColumnType::kName:  // an ENUM's codes are as wide as its members need
      if (dictionary.texts.size() <= UINT8_MAX) return out.names<std::uint8_t>(column.offset, dictionary.codes);
      if (dictionary.texts.size() <= UINT16_MAX) return out.names<std::uint16_t>(column.offset, dictionary.codes);
      return out.names<std::uint32_t>(column.offset, dictionary.codes);
  }
  if (column.nullable) out.nulls(column.present_offset);
}

duckdb_logical_type type_of(const DuckDbApi& api, const Column& column, const RowBatch::Dictionary& dictionary) {
  switch (column.type) {
    case ColumnType::kInt64: return api.create_logical_type(DUCKDB_TYPE_BIGINT);
    case ColumnType::kInt32: return api.create_logical_type(DUCKDB_TYPE_INTEGER);
    case ColumnType::kDouble: return api.create_logical_type(DUCKDB_TYPE_DOUBLE);
    case ColumnType::kBool: return api.create_logical_type(DUCKDB_TYPE_BOOLEAN);
    case ColumnType::kName: break;
  }
  // An ENUM is written as a dictionary of its members, without hashing a single string. It needs one member at least.
  std::vector<const char*> members = dictionary.texts;
  if (members.empty()) members.push_back("");
  return api.create_enum_type(members.data(), members.size());
}

void bind_rows(duckdb_bind_info info) {
  const DuckDbApi& api = *duckdb_api();
  duckdb_value address = api.bind_get_parameter(info, 0);
  auto* scan = reinterpret_cast<Scan*>(api.get_uint64(address));
  api.destroy_value(&address);
  const Table& table = scan->batch->table();
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    duckdb_logical_type type = type_of(api, table.columns[i], scan->batch->dictionary(i));
    api.bind_add_result_column(info, std::string(table.columns[i].name).c_str(), type);
    api.destroy_logical_type(&type);
  }
  api.bind_set_cardinality(info, scan->batch->rows().size(), true);
  api.bind_set_bind_data(info, scan, nullptr);
}

void init_rows(duckdb_init_info) {}

void next_rows(duckdb_function_info info, duckdb_data_chunk chunk) {
  const DuckDbApi& api = *duckdb_api();
  auto* scan = static_cast<Scan*>(api.function_get_bind_data(info));
  const RowBatch& batch = *scan->batch;
  const std::size_t count = std::min<std::size_t>(api.vector_size(), batch.rows().size() - scan->at);
  const Table& table = batch.table();
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    ColumnFill out(api, api.chunk_vector(chunk, i), batch.rows().data() + scan->at, count);
    fill(out, table.columns[i], batch.dictionary(i));
  }
  scan->at += count;
  api.set_chunk_size(chunk, count);
}

Result<void> register_rows(const Connection& connection) {
  const DuckDbApi& api = connection.api();
  duckdb_table_function function = api.create_table_function();
  duckdb_logical_type address = api.create_logical_type(DUCKDB_TYPE_UBIGINT);
  api.table_function_set_name(function, "llmprof_rows");
  api.table_function_add_parameter(function, address);
  api.table_function_set_bind(function, bind_rows);
  api.table_function_set_init(function, init_rows);
  api.table_function_set_function(function, next_rows);
  const bool registered = api.register_table_function(connection.handle(), function) == DuckDBSuccess;
  api.destroy_logical_type(&address);
  api.destroy_table_function(&function);
  if (!registered) return Error{ErrorCode::kInternal, "the SQL engine refuses the row reader", ""};
  return {};
}

}  // namespace

Result<ParquetWriter> ParquetWriter::create() {
  LLMPROF_LET(Database database, Database::open({{"threads", "1"}}));  // the caller's thread does the work
  LLMPROF_LET(Connection connection, database.connect());
  LLMPROF_TRY(register_rows(connection));
  return ParquetWriter(std::move(database), std::move(connection));
}

Result<void> ParquetWriter::write(const RowBatch& batch, const std::string& path) const {
  Scan scan{&connection_.api(), &batch};
  auto written = connection_.run(fmt::format("COPY (SELECT * FROM llmprof_rows({}::UBIGINT)) TO {} ({})", reinterpret_cast<std::uintptr_t>(&scan),
                                             sql_literal(path), kParquetOptions));
  if (!written) {
    return Error{ErrorCode::kIo, fmt::format("{}: cannot write: {}", path, written.error().message), "check the free disk space"};
  }
  ::chmod(path.c_str(), 0600);
  return {};
}

}  // namespace llmprof::trace
