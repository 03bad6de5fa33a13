#include "trace/result_reader.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

namespace llmprof::trace {
namespace {

constexpr std::uint32_t kInlineBytes = 12;  // shorter strings live in the duckdb_string_t itself

template <class T>
T at(const void* data, std::size_t row) {
  return static_cast<const T*>(data)[row];
}

__int128 huge(const duckdb_hugeint& value) { return static_cast<__int128>(value.upper) << 64 | value.lower; }

// Any integer type as 128 bits.
__int128 integer_at(duckdb_type type, const void* data, std::size_t row) {
  switch (type) {
    case DUCKDB_TYPE_BOOLEAN:
      return at<bool>(data, row) ? 1 : 0;
    case DUCKDB_TYPE_TINYINT:
      return at<std::int8_t>(data, row);
    case DUCKDB_TYPE_SMALLINT:
      return at<std::int16_t>(data, row);
    case DUCKDB_TYPE_INTEGER:
      return at<std::int32_t>(data, row);
    case DUCKDB_TYPE_BIGINT:
      return at<std::int64_t>(data, row);
    case DUCKDB_TYPE_UTINYINT:
      return at<std::uint8_t>(data, row);
    case DUCKDB_TYPE_USMALLINT:
      return at<std::uint16_t>(data, row);
    case DUCKDB_TYPE_UINTEGER:
      return at<std::uint32_t>(data, row);
    case DUCKDB_TYPE_UBIGINT:
      return at<std::uint64_t>(data, row);
    default:
      return huge(at<duckdb_hugeint>(data, row));
  }
}

std::string digits(__int128 value) { return fmt::format("{}", value); }

void set_integer(Value& out, __int128 value) {
  if (value >= INT64_MIN && value <= INT64_MAX) {
    out.type = Value::Type::kInt;
    out.integer = static_cast<std::int64_t>(value);
  } else {  // exact rather than a number
    out.type = Value::Type::kText;
    out.text = digits(value);
  }
}

void set_double(Value& out, double value) {
  out.type = Value::Type::kDouble;
  out.real = value;
}

// Strings as codes. Within a chunk equal strings of a column mostly share their bytes (the reader's dictionary), so the
// place of the bytes tells the code; across chunks that memory may be reused, hence next_chunk().
class NameCodes {
 public:
  explicit NameCodes(std::vector<std::string>& names) : names_(names), recent_(kRecent) { names_.assign(1, ""); }

  void next_chunk() { ++chunk_; }

  std::int64_t code(const duckdb_string_t& text) {
    std::uint64_t key[2];
    std::memcpy(key, &text, sizeof key);
    Recent& recent = recent_[((key[0] ^ key[1]) * 0x9E3779B97F4A7C15u) >> (64 - kRecentBits)];
    if (recent.chunk != chunk_ || recent.key[0] != key[0] || recent.key[1] != key[1]) {
      recent = {{key[0], key[1]}, chunk_, find(text_of(text))};
    }
    return recent.code;
  }

 private:
  static constexpr int kRecentBits = 12;
  static constexpr std::size_t kRecent = 1u << kRecentBits;
  struct Recent {
    std::uint64_t key[2] = {0, 0};
    std::uint64_t chunk = 0;  // that `key` was seen in
    std::int64_t code = 0;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  std::int64_t find(std::string_view text) {
    if (const auto found = codes_.find(text); found != codes_.end()) return found->second;
    const auto code = static_cast<std::int64_t>(names_.size());
    names_.emplace_back(text);
    codes_.emplace(text, code);
    return code;
  }

  std::vector<std::string>& names_;
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> codes_;
  std::vector<Recent> recent_;
  std::uint64_t chunk_ = 0;
};

template <class T>
void append(std::vector<std::int64_t>& out, const void* data, std::size_t count) {
  const auto* values = static_cast<const T*>(data);
  out.insert(out.end(), values, values + count);
}

void append_any(std::vector<std::int64_t>& out, duckdb_type type, const void* data, std::size_t count) {
  switch (type) {
    case DUCKDB_TYPE_BIGINT:
      return append<std::int64_t>(out, data, count);
    case DUCKDB_TYPE_INTEGER:
      return append<std::int32_t>(out, data, count);
    case DUCKDB_TYPE_DOUBLE:
      return append<double>(out, data, count);
    case DUCKDB_TYPE_BOOLEAN:
      return append<bool>(out, data, count);
    default:
      for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<std::int64_t>(integer_at(type, data, i)));
  }
}

void append_column(std::vector<std::int64_t>& out, const DuckDbApi& api, duckdb_type type, duckdb_vector vector,
                   std::size_t count, NameCodes& codes) {
  const std::size_t begin = out.size();
  const void* data = api.vector_data(vector);
  const std::uint64_t* validity = api.vector_validity(vector);
  if (type == DUCKDB_TYPE_VARCHAR) {
    for (std::size_t i = 0; i < count; ++i) {
      out.push_back(is_valid(validity, i) ? codes.code(static_cast<const duckdb_string_t*>(data)[i]) : 0);
    }
    return;
  }
  append_any(out, type, data, count);
  for (std::size_t i = 0; validity != nullptr && i < count; ++i) {
    if (!is_valid(validity, i)) out[begin + i] = Columns::kNull;
  }
}

void append_reals(std::vector<double>& out, const DuckDbApi& api, duckdb_vector vector, std::size_t count) {
  const auto* data = static_cast<const double*>(api.vector_data(vector));
  const std::uint64_t* validity = api.vector_validity(vector);
  out.assign(data, data + count);
  for (std::size_t i = 0; validity != nullptr && i < count; ++i) {
    if (!is_valid(validity, i)) out[i] = std::numeric_limits<double>::quiet_NaN();
  }
}

bool is_number(duckdb_type type) {
  return (type >= DUCKDB_TYPE_BOOLEAN && type <= DUCKDB_TYPE_UBIGINT) || type == DUCKDB_TYPE_DOUBLE ||
         type == DUCKDB_TYPE_HUGEINT;
}

Result<std::vector<duckdb_type>> types_of_columns(const DuckDbApi& api, Stream& stream) {
  std::vector<duckdb_type> types;
  for (idx_t i = 0; i < api.column_count(&stream.result()); ++i) {
    types.push_back(api.column_type(&stream.result(), i));
    if (!is_number(types.back()) && types.back() != DUCKDB_TYPE_VARCHAR) {
      return Error{ErrorCode::kInternal,
                   fmt::format("column {} has no type for native passes; cast it", stream.names()[i]), ""};
    }
  }
  return types;
}

}  // namespace

std::string_view text_of(const duckdb_string_t& text) {
  const std::uint32_t length = text.value.inlined.length;
  return {length <= kInlineBytes ? text.value.inlined.inlined : text.value.pointer.ptr, length};
}

RowReader::RowReader(const Connection& connection, Stream& stream) : api_(connection.api()) {
  for (idx_t i = 0; i < api_.column_count(&stream.result()); ++i) {
    Source source{api_.column_type(&stream.result(), i)};
    if (source.type == DUCKDB_TYPE_DECIMAL) {
      duckdb_logical_type type = api_.column_logical_type(&stream.result(), i);
      source = {api_.decimal_internal_type(type), std::pow(10.0, api_.decimal_scale(type))};
      api_.destroy_logical_type(&type);
    }
    sources_.push_back(source);
  }
}

void RowReader::read(duckdb_data_chunk chunk, std::size_t row, std::vector<Value>& values) const {
  values.resize(sources_.size());
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const Source& source = sources_[i];
    duckdb_vector vector = api_.chunk_vector(chunk, i);
    const void* data = api_.vector_data(vector);
    Value& value = values[i];
    value.text.clear();
    if (!is_valid(api_.vector_validity(vector), row)) {
      value.type = Value::Type::kNull;
    } else if (source.type == DUCKDB_TYPE_VARCHAR) {
      value.type = Value::Type::kText;
      value.text = text_of(static_cast<const duckdb_string_t*>(data)[row]);
    } else if (source.type == DUCKDB_TYPE_DOUBLE) {
      set_double(value, at<double>(data, row));
    } else if (source.type == DUCKDB_TYPE_FLOAT) {
      set_double(value, static_cast<double>(at<float>(data, row)));
    } else if (source.scale != 0) {
      set_double(value, static_cast<double>(integer_at(source.type, data, row)) / source.scale);
    } else if (source.type == DUCKDB_TYPE_BOOLEAN) {
      value.type = Value::Type::kBool;
      value.integer = at<bool>(data, row) ? 1 : 0;
    } else {
      set_integer(value, integer_at(source.type, data, row));
    }
  }
}

Result<Columns> read_columns(const Connection& connection, Stream& stream) {
  const DuckDbApi& api = connection.api();
  LLMPROF_LET(const std::vector<duckdb_type> types, types_of_columns(api, stream));
  Columns out;
  out.names_of_columns = stream.names();
  out.values.resize(types.size());
  NameCodes codes(out.names);
  while (true) {
    LLMPROF_LET(duckdb_data_chunk chunk, stream.next());
    if (chunk == nullptr) return out;
    codes.next_chunk();
    const std::size_t count = api.chunk_size(chunk);
    for (std::size_t i = 0; i < types.size(); ++i)
      append_column(out.values[i], api, types[i], api.chunk_vector(chunk, i), count, codes);
  }
}

Result<void> read_column_chunks(const Connection& connection, Stream& stream, const ChunkSink& sink) {
  const DuckDbApi& api = connection.api();
  LLMPROF_LET(const std::vector<duckdb_type> types, types_of_columns(api, stream));
  ColumnChunk out;
  out.names_of_columns = stream.names();
  out.values.resize(types.size());
  out.reals.resize(types.size());
  NameCodes codes(out.names);
  while (true) {
    LLMPROF_LET(duckdb_data_chunk chunk, stream.next());
    if (chunk == nullptr) return {};
    codes.next_chunk();
    out.count = api.chunk_size(chunk);
    for (std::size_t i = 0; i < types.size(); ++i) {
      duckdb_vector vector = api.chunk_vector(chunk, i);
      out.values[i].clear();
      if (types[i] == DUCKDB_TYPE_DOUBLE)
        append_reals(out.reals[i], api, vector, out.count);
      else
        append_column(out.values[i], api, types[i], vector, out.count, codes);
    }
    if (!sink(out)) return {};
  }
}

}  // namespace llmprof::trace
