// A SQLite database with a table per table of the run. Tables with an id have it as their primary key; llmprof_column
// says what every column means.
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstdio>

#include "base/file.h"
#include "base/version.h"
#include "exporters/table_list.h"

namespace llmprof::exporters {
namespace sqlite {
namespace {

using trace::ColumnType;
using trace::Value;

// Owns the connection; a database that was not finished is removed.
class Database {
 public:
  static Result<Database> create(const std::string& path) {
    Database made(path);
    ::unlink(made.temporary_.c_str());
    const int status =
        sqlite3_open_v2(made.temporary_.c_str(), &made.handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    if (status != SQLITE_OK) return made.error();
    // Nobody reads it before it is renamed: no journal is needed.
    LLMPROF_TRY(made.run("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA page_size = 65536; BEGIN"));
    return made;
  }
  Database(Database&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::move(other.temporary_)),
        handle_(std::exchange(other.handle_, nullptr)) {}
  Database& operator=(Database&&) = delete;
  ~Database() {
    if (handle_ == nullptr) return;
    sqlite3_close(handle_);
    ::unlink(temporary_.c_str());
  }

  sqlite3* handle() const { return handle_; }
  Error error() const {
    return {ErrorCode::kIo,
            fmt::format("{}: {}", path_, handle_ == nullptr ? "out of memory" : sqlite3_errmsg(handle_)), ""};
  }
  Result<void> run(const std::string& sql) const {
    if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return error();
    return {};
  }
  Result<void> finish() {
    LLMPROF_TRY(run("COMMIT"));
    if (sqlite3_close(handle_) != SQLITE_OK) return error();
    handle_ = nullptr;
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return base::errno_error(ErrorCode::kIo, path_, errno);
    return {};
  }

 private:
  explicit Database(const std::string& path) : path_(path), temporary_(fmt::format("{}.{}.tmp", path, ::getpid())) {}
  std::string path_, temporary_;
  sqlite3* handle_ = nullptr;
};

class Insert {
 public:
  static Result<Insert> prepare(const Database& database, const std::string& table, std::size_t columns) {
    std::string marks = "?";
    for (std::size_t i = 1; i < columns; ++i) marks += ",?";
    Insert made(database);
    const std::string sql = fmt::format("INSERT INTO \"{}\" VALUES ({})", table, marks);
    if (sqlite3_prepare_v2(database.handle(), sql.c_str(), -1, &made.statement_, nullptr) != SQLITE_OK)
      return database.error();
    return made;
  }
  Insert(Insert&& other) noexcept : database_(other.database_), statement_(std::exchange(other.statement_, nullptr)) {}
  Insert& operator=(Insert&&) = delete;
  ~Insert() { sqlite3_finalize(statement_); }

  Result<void> add(const std::vector<Value>& row) const {
    for (std::size_t i = 0; i < row.size(); ++i) bind(static_cast<int>(i) + 1, row[i]);
    if (sqlite3_step(statement_) != SQLITE_DONE) return database_->error();
    sqlite3_reset(statement_);
    return {};
  }

 private:
  explicit Insert(const Database& database) : database_(&database) {}
  void bind(int at, const Value& value) const {
    using Type = Value::Type;
    if (value.type == Type::kNull) sqlite3_bind_null(statement_, at);
    if (value.type == Type::kInt || value.type == Type::kBool) sqlite3_bind_int64(statement_, at, value.integer);
    if (value.type == Type::kDouble) sqlite3_bind_double(statement_, at, value.real);
    if (value.type == Type::kText)  // the row lives until the statement has stepped
      sqlite3_bind_text64(statement_, at, value.text.data(), value.text.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  const Database* database_;
  sqlite3_stmt* statement_ = nullptr;
};

std::string declaration(const ExportTable& table, const std::string& name) {
  const trace::Column* column = table.table == nullptr ? nullptr : table.table->find(name);
  if (column == nullptr) return fmt::format("\"{}\"", name);
  if (name == "id") return "\"id\" INTEGER PRIMARY KEY";
  const std::string_view type = column->type == ColumnType::kDouble ? "REAL"
                                : column->type == ColumnType::kName ? "TEXT"
                                                                    : "INTEGER";
  return fmt::format("\"{}\" {}{}", name, type, column->nullable ? "" : " NOT NULL");
}

std::string create_statement(const ExportTable& table, const std::vector<std::string>& names) {
  std::string columns;
  for (const std::string& name : names) columns += (columns.empty() ? "" : ", ") + declaration(table, name);
  return fmt::format("CREATE TABLE \"{}\" ({})", table.name, columns);
}

// The first error of a callback that can only say "no more".
struct FirstError {
  std::optional<Error> error;
  bool ok(Result<void> result) {
    if (!result && !error) error = std::move(result.error());
    return !error.has_value();
  }
};

Result<void> write_table(const ExportTable& table, Database& database, TableWriter& writer) {
  std::optional<Insert> insert;
  FirstError first;
  LLMPROF_TRY(writer.each_row(
      table,
      [&](const std::vector<std::string>& names) {
        if (!first.ok(database.run(create_statement(table, names)))) return;
        auto prepared = Insert::prepare(database, table.name, names.size());
        if (prepared) insert.emplace(std::move(*prepared));
        if (!prepared) first.error = prepared.error();
      },
      [&](const std::vector<Value>& row) { return insert.has_value() && first.ok(insert->add(row)); }));
  if (first.error) return *first.error;
  return {};
}

Value text_value(std::string_view text) { return {.type = Value::Type::kText, .text = std::string(text)}; }

Result<void> write_meanings(const std::vector<ExportTable>& tables, const Request& request, Database& database) {
  LLMPROF_TRY(
      database.run("CREATE TABLE llmprof_run (name TEXT, value TEXT); "
                   "CREATE TABLE llmprof_column (table_name TEXT, column_name TEXT, unit TEXT, meaning TEXT)"));
  const trace::RunInfo& info = request.run.info();
  LLMPROF_LET(const Insert run, Insert::prepare(database, "llmprof_run", 2));
  const std::pair<std::string_view, std::string> facts[] = {
      {"llmprof_version", std::string(base::version())},
      {"run_format_version", fmt::format("{}", info.format_version)},
      {"created", info.created},
      {"source", info.source},
      {"clock", info.clock}};
  for (const auto& [name, value] : facts) LLMPROF_TRY(run.add({text_value(name), text_value(value)}));
  LLMPROF_LET(const Insert meaning, Insert::prepare(database, "llmprof_column", 4));
  for (const ExportTable& table : tables) {
    if (table.table == nullptr) continue;
    for (const trace::Column& column : table.table->columns) {
      LLMPROF_TRY(meaning.add(
          {text_value(table.name), text_value(column.name), text_value(column.unit), text_value(column.meaning)}));
    }
  }
  return {};
}

Result<Written> write(const Request& request) {
  LLMPROF_LET(const std::vector<ExportTable> tables, tables_to_write(request));
  LLMPROF_LET(Database database, Database::create(request.output));
  TableWriter writer(request, tables);
  LLMPROF_TRY(writer.each_table([&](const ExportTable& table) { return write_table(table, database, writer); }));
  LLMPROF_TRY(write_meanings(tables, request, database));
  LLMPROF_TRY(database.finish());
  return Written{{request.output}, writer.rows(), {}};
}

}  // namespace
}  // namespace sqlite

extern const Exporter kSqlite;
const Exporter kSqlite{"sqlite",      "a SQLite database with a table per table", ".sqlite", sqlite::write, false,
                       ".sqlite3 .db"};

}  // namespace llmprof::exporters
