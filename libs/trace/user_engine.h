#pragma once
// The engine that runs a user's SQL: it can read the checked files of one run, and do nothing else.

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "trace/database.h"
#include "trace/parquet_check.h"
#include "trace/run.h"

namespace llmprof::trace {

class UserEngine {
 public:
  // Checks the files and makes the views, then locks: `files` are the only paths, nothing can be loaded, written or
  // set. It may use `memory` ("2GB"); nothing is spilled to disk.
  static Result<UserEngine> create(const std::vector<OpenFile>& files, const std::string& memory);

  Result<void> each(const std::string& sql, const ColumnSink& columns, const RowSink& row) const;
  // Rows written. The file is written by a second engine that never sees the SQL.
  Result<std::int64_t> to_parquet(const std::string& sql, const std::string& file) const;

 private:
  Result<Stream> open(const std::string& sql, Types types) const;
  UserEngine(Database database, Connection connection)
      : database_(std::move(database)), connection_(std::move(connection)) {}
  Database database_;
  Connection connection_;
};

}  // namespace llmprof::trace
