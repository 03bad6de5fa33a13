#pragma once
// SQLite for untrusted databases: an Input as its only file, and the tables of the database row by row.

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
#include "importers/input.h"
#include "importers/sink.h"

namespace llmprof::importers::nsys {

// SQLite's view of an Input: one read-only file in a world without other files. No journal or WAL is looked for, no
// lock is taken, nothing is opened; so it works in the sandbox, and for content that was compressed.
class InputVfs {
 public:
  static constexpr const char* kName = "llmprof-input";

  InputVfs(Input& input, std::uint64_t plain_bytes);  // registers itself under kName; one at a time
  ~InputVfs();
  InputVfs(const InputVfs&) = delete;
  InputVfs& operator=(const InputVfs&) = delete;

  std::uint64_t bytes_read() const { return bytes_read_; }
  const std::string& error() const { return error_; }  // what the input said when a read failed

  // SQLite refuses a file that is shorter than its header says; with this the header says what there is.
  void cut_to_pages(std::uint64_t pages) { pages_ = pages; }

  int read(char* out, std::size_t size, std::uint64_t offset);
  std::uint64_t size() const { return size_; }

 private:
  void patch_page_count(char* out, std::size_t size, std::uint64_t offset) const;
  bool fill(std::uint64_t offset, std::size_t wanted);

  Input& input_;
  std::uint64_t size_;
  std::uint64_t bytes_read_ = 0, pages_ = 0;
  std::string error_;
  // Tables lie in one piece each: what follows the last read is read ahead.
  std::string ahead_;
  std::uint64_t ahead_offset_ = 0, next_offset_ = 0;
  sqlite3_vfs vfs_{};
};

inline constexpr std::int64_t kTimeLimitNs = std::int64_t{1} << 61;  // about 73 years either way
inline bool is_time(std::int64_t ns) { return ns > -kTimeLimitNs && ns < kTimeLimitNs; }

class Rows;

// An untrusted SQLite database, read without trusting it without trusting it: tables only, in the order of their
// rowids, by the names of columns. No view, virtual table, generated column, trigger, function or temporary file is
// ever used.
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
  // Calls take(rows) for every row of the same. What `take` answers is not looked at: it may be what Rows::lose() is.
  template <class Take>
  Result<void> each(std::string_view table, std::initializer_list<const char*> columns, std::size_t needed,
                    const Take& take);
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
  // Whether what was read so far is of the right types and both are times, in order; else the row is counted.
  bool is_interval(std::optional<std::int64_t> start, std::optional<std::int64_t> end);

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

template <class Take>
Result<void> Database::each(std::string_view table, std::initializer_list<const char*> columns, std::size_t needed,
                            const Take& take) {
  LLMPROF_LET(Rows found, rows(table, columns, needed));
  while (found.next()) take(found);
  return found.finish();
}

}  // namespace llmprof::importers::nsys
