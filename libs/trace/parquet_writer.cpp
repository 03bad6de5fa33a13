#include "trace/parquet_writer.h"

#include <algorithm>
#include <cstring>

#include "trace/parquet_copy.h"

namespace llmprof::trace {
namespace {

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

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

  // One that is absent may be any byte.
  void flags(std::size_t offset) {
    auto* out = static_cast<bool*>(data_);
    for (std::size_t i = 0; i < count_; ++i) out[i] = load<std::uint8_t>(rows_[i] + offset) == 1;
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
    case ColumnType::kInt64:
      out.plain<std::int64_t>(column.offset);
      break;
    case ColumnType::kInt32:
      out.plain<std::int32_t>(column.offset);
      break;
    case ColumnType::kDouble:
      out.plain<double>(column.offset);
      break;
    case ColumnType::kBool:
      out.flags(column.offset);
      break;
    case ColumnType::kName:  // an ENUM's codes are as wide as its members need
      if (dictionary.texts.size() <= UINT8_MAX) return out.names<std::uint8_t>(column.offset, dictionary.codes);
      if (dictionary.texts.size() <= UINT16_MAX) return out.names<std::uint16_t>(column.offset, dictionary.codes);
      return out.names<std::uint32_t>(column.offset, dictionary.codes);
  }
  if (column.nullable) out.nulls(column.present_offset);
}

duckdb_logical_type type_of(const DuckDbApi& api, const Column& column, const RowBatch::Dictionary& dictionary) {
  switch (column.type) {
    case ColumnType::kInt64:
      return api.create_logical_type(DUCKDB_TYPE_BIGINT);
    case ColumnType::kInt32:
      return api.create_logical_type(DUCKDB_TYPE_INTEGER);
    case ColumnType::kDouble:
      return api.create_logical_type(DUCKDB_TYPE_DOUBLE);
    case ColumnType::kBool:
      return api.create_logical_type(DUCKDB_TYPE_BOOLEAN);
    case ColumnType::kName:
      break;
  }
  // An ENUM is written as a dictionary of its members, without hashing a single string. It needs one member at least.
  std::vector<const char*> members = dictionary.texts;
  if (members.empty()) members.push_back("");
  return api.create_enum_type(members.data(), members.size());
}

// A batch, 2048 rows at a time.
class BatchSource : public ChunkSource {
 public:
  BatchSource(const DuckDbApi& api, const RowBatch& batch) : api_(api), batch_(batch) {}

  void describe(duckdb_bind_info info) override {
    const std::vector<Column>& columns = batch_.table().columns;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      duckdb_logical_type type = type_of(api_, columns[i], batch_.dictionary(i));
      api_.bind_add_result_column(info, std::string(columns[i].name).c_str(), type);
      api_.destroy_logical_type(&type);
    }
    api_.bind_set_cardinality(info, batch_.rows().size(), true);
  }

  Result<void> next(duckdb_data_chunk chunk) override {
    const std::size_t count = std::min<std::size_t>(api_.vector_size(), batch_.rows().size() - at_);
    const std::vector<Column>& columns = batch_.table().columns;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      ColumnFill out(api_, api_.chunk_vector(chunk, i), batch_.rows().data() + at_, count);
      fill(out, columns[i], batch_.dictionary(i));
    }
    at_ += count;
    api_.set_chunk_size(chunk, count);
    return {};
  }

 private:
  const DuckDbApi& api_;
  const RowBatch& batch_;
  std::size_t at_ = 0;
};

}  // namespace

Result<ParquetWriter> ParquetWriter::create() {
  LLMPROF_LET(Database database, Database::open({{"threads", "1"}}));  // the caller's thread does the work
  LLMPROF_LET(Connection connection, database.connect());
  LLMPROF_TRY(register_chunk_source(connection));
  return ParquetWriter(std::move(database), std::move(connection));
}

Result<void> ParquetWriter::write(const RowBatch& batch, const std::string& path) const {
  BatchSource source(connection_.api(), batch);
  return copy_to_parquet(connection_, source, path);
}

}  // namespace llmprof::trace
