#include "trace/foreign_parquet.h"

#include <fmt/format.h>

#include "trace/database.h"
#include "trace/result_reader.h"

namespace llmprof::trace {

struct ForeignParquet::State {
  std::string path;
  Database database;
  Connection connection;
};

ForeignParquet::ForeignParquet(std::unique_ptr<State> state) : state_(std::move(state)) {}
ForeignParquet::ForeignParquet(ForeignParquet&&) noexcept = default;
ForeignParquet::~ForeignParquet() = default;

Result<ForeignParquet> ForeignParquet::prepare(const std::string& path) {
  if (path.find_first_of("*?[") != std::string::npos) {
    return Error{ErrorCode::kUnsupported, path + ": the name is a pattern to the engine", "rename the file"};
  }
  LLMPROF_LET(Database database, Database::open({{"threads", "1"}, {"memory_limit", "256MB"}}));
  LLMPROF_LET(Connection connection, database.connect());
  LLMPROF_TRY(connection.run(
      fmt::format("SET allowed_paths = [{}]; SET enable_external_access = false; SET lock_configuration = true",
                  sql_literal(path))));
  return ForeignParquet(std::make_unique<State>(
      State{.path = path, .database = std::move(database), .connection = std::move(connection)}));
}

Result<void> ForeignParquet::each(const ColumnSink& columns, const RowSink& row) const {
  LLMPROF_LET(Stream stream,
              state_->connection.stream(
                  fmt::format("SELECT * FROM read_parquet({}, hive_partitioning = false)", sql_literal(state_->path)),
                  Trust::kUser, Types::kPlain));
  columns(stream.names());
  return read_rows(state_->connection, stream, row);
}

}  // namespace llmprof::trace
