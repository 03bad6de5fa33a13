#pragma once
// Rows of a table to one Parquet file: sorted, zstd, delta and dictionary encoded. The engine reads our rows in place
// through a table function; nothing is copied into a table of its own.

#include <string>

#include "base/result.h"
#include "trace/database.h"
#include "trace/row_batch.h"

namespace llmprof::trace {

// Writes through one connection. Make one writer per thread.
class ParquetWriter {
 public:
  static Result<ParquetWriter> create();
  Result<void> write(const RowBatch& batch, const std::string& path) const;

 private:
  ParquetWriter(Database database, Connection connection)
      : database_(std::move(database)), connection_(std::move(connection)) {}
  Database database_;
  Connection connection_;
};

}  // namespace llmprof::trace
