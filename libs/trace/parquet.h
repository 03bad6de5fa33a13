#pragma once
// Parquet files: checked against the schema before a single value is read, and written from chunks that we produce.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trace/database.h"
#include "trace/run_info.h"
#include "trace/schema.h"

namespace llmprof::trace {

// A file of a table, as the engine is to open it.
struct OpenFile {
  TableFile listed;
  std::string path;
};

// Columns that the files of each table have, of those the schema knows. Refuses columns of another type, nested
// columns, foreign compression, other row counts, and parts of a table that differ.
using ColumnsOfTables = std::map<std::string, std::set<std::string, std::less<>>, std::less<>>;
Result<ColumnsOfTables> check_parquet(const Connection& connection, const std::vector<OpenFile>& files);

std::string_view sql_type(const Column& column);  // "BIGINT", …

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
