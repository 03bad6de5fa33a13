#pragma once
// Chunks that we produce, written by the engine as one Parquet file.

#include <string>

#include "base/result.h"
#include "trace/database.h"

namespace llmprof::trace {

// COPY options of every Parquet file llmprof writes. V2 brings the delta encodings; more than zstd's default level
// gains 1 % and costs a quarter of the speed.
// Ids that point elsewhere have many distinct values, each a little above the one before: differences are smaller than
// a dictionary of them.
inline constexpr const char* kParquetOptions =
    "FORMAT parquet, PARQUET_VERSION V2, COMPRESSION zstd, ROW_GROUP_SIZE 122880, DICTIONARY_SIZE_LIMIT 1024";

class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  virtual void describe(duckdb_bind_info info) = 0;        // adds the columns
  virtual Result<void> next(duckdb_data_chunk chunk) = 0;  // fills the next rows; a size of 0 ends
};

// Once per database, before copy_to_parquet.
Result<void> register_chunk_source(const Connection& connection);
Result<void> copy_to_parquet(const Connection& connection, ChunkSource& source, const std::string& path);

}  // namespace llmprof::trace
