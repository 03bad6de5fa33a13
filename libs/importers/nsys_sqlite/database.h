#pragma once
// A stranger's SQLite database, read without trusting it: tables only, in the order of their rowids, by the names of
// columns. No view, virtual table, generated column, trigger, function or temporary file is ever used.

#include <sqlite3.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "importers/nsys_sqlite/input_vfs.h"
#include "importers/sink.h"

namespace llmprof::importers::nsys {

class Rows;

class Database {
 public:
  static Result<std::unique_ptr<Database>> open(Input& input, Sink& sink);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // The table of this name or, if there is none, its newest form NAME_V2, NAME_V3, …; "" if there is none.
  std::string find_table(std::string_view name) const;
  bool has(std::string_view name) const { return !find_table(name).empty(); }
  std::vector<std::string> tables() const;
  // Rows of a table, columns as given. Those that the table does not have are NULL, except the first `needed`, without
  // which the answer is an error that names them. No such table: no rows.
  Result<Rows> rows(std::string_view table, std::initializer_list<const char*> columns, std::size_t needed = 0);
  // About how many rows a table has: the largest rowid.
  std::int64_t size_of(std::string_view table);
  // The text in `column` of the row with this `key`; nullopt if there is none. For tables with a primary key.
  std::optional<std::string> text_of(std::string_view table, const char* key_column, std::int64_t key,
                                     const char* column);

  Sink& sink() { return sink_; }
  bool go_on();  // tells the sink how far we are; false: stop
  // An object other than a plain table stands where an export has a table.
  Result<void> refuse_disguises(std::span<const char* const> tables);
  Error damage(std::string_view what);  // with what SQLite says about it

 private:
  friend class Rows;
  struct Entry {
    std::string type, table, sql;
  };
  Database(Input& input, Sink& sink, std::uint64_t plain_bytes);
  Result<void> set_up();
  Result<void> read_schema();
  Result<std::vector<std::string>> columns_of(const std::string& table);
  sqlite3_stmt* prepare(const std::string& sql);

  Input& input_;
  Sink& sink_;
  std::uint64_t plain_bytes_;
  InputVfs vfs_;
  sqlite3* connection_ = nullptr;
  std::multimap<std::string, Entry, std::less<>> schema_;  // by name
  std::map<std::string, sqlite3_stmt*> lookups_;
  std::int64_t soft_heap_before_ = 0, hard_heap_before_ = 0;
  double result_at_cpu_s_ = 0;  // when SQLite had last given a row
  std::uint64_t rows_given_ = 0, rows_seen_ = 0;
  bool interrupted_ = false, out_of_time_ = false;
};

// The rows of one table, one after the other. Damaged and oversized rows are counted and passed over.
class Rows {
 public:
  Rows() = default;
  Rows(Rows&& other) noexcept;
  Rows& operator=(Rows&&) = delete;
  ~Rows();

  bool next();
  std::int64_t rowid() const { return rowid_; }

  bool is_null(int column) const { return sqlite3_column_type(statement_, column + 1) == SQLITE_NULL; }
  // A whole number; NULL and anything else are nullopt, anything else also makes the row odd().
  std::optional<std::int64_t> integer(int column);
  std::int64_t integer_or(int column, std::int64_t otherwise) { return integer(column).value_or(otherwise); }
  std::optional<double> number(int column);
  std::optional<std::string_view> text(int column);    // valid until next()
  bool odd() const { return odd_; }                    // a value that was asked for is of the wrong type
  void lose(trace::Loss loss, std::string_view what);  // counts this row

  Result<void> finish();  // after next() was false: was it the end?

 private:
  friend class Database;
  Rows(Database& database, sqlite3_stmt* statement, std::string table)
      : database_(&database), statement_(statement), table_(std::move(table)) {}
  void damaged(std::string_view why);
  bool recover(int code);
  bool pass_over();

  Database* database_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
  std::string table_;
  std::int64_t rowid_ = INT64_MIN;
  bool odd_ = false;
};

}  // namespace llmprof::importers::nsys
