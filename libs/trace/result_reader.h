#pragma once
// Chunks of the engine as the values and columns of trace/run.h.

#include <vector>

#include "base/result.h"
#include "trace/database.h"
#include "trace/run.h"

namespace llmprof::trace {

// Reads the rows of a stream with plain types (Types::kPlain).
class RowReader {
 public:
  RowReader(const Connection& connection, Stream& stream);
  // Overwrites `row` with row number `at` of the chunk.
  void read(duckdb_data_chunk chunk, std::size_t at, std::vector<Value>& row) const;

 private:
  struct Source {
    duckdb_type type;  // DECIMAL: of the integer behind it
    double scale = 0;  // DECIMAL: what the integer is divided by
  };
  const DuckDbApi& api_;
  std::vector<Source> sources_;
};

// Calls take(row) for every row of such a stream, until it answers false. The row may be moved from.
template <class Take>
Result<void> read_rows(const Connection& connection, Stream& stream, const Take& take) {
  const RowReader reader(connection, stream);
  std::vector<Value> row;
  while (true) {
    LLMPROF_LET(duckdb_data_chunk chunk, stream.next());
    if (chunk == nullptr) return {};
    for (std::size_t i = 0; i < connection.api().chunk_size(chunk); ++i) {
      reader.read(chunk, i, row);
      if (!take(row)) return {};
    }
  }
}

// All rows as columns. Fails on types that are neither numbers, BOOLEAN nor VARCHAR.
Result<Columns> read_columns(const Connection& connection, Stream& stream);
// The same piece by piece, with doubles as they are.
Result<void> read_column_chunks(const Connection& connection, Stream& stream, const ChunkSink& sink);

std::string_view text_of(const duckdb_string_t& text);
inline bool is_valid(const std::uint64_t* validity, std::size_t row) {
  return validity == nullptr || (validity[row / 64] >> (row % 64) & 1) != 0;
}

}  // namespace llmprof::trace
