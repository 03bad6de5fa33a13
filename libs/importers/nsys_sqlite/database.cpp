#include "importers/nsys_sqlite/database.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "importers/nsys_sqlite/database_limits.h"

namespace llmprof::importers::nsys {
namespace {

constexpr double kMaxCpuSecondsPerRow = 60;
constexpr int kInstructionsPerCheck = 200'000;

std::string in_quotes(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) text.append(c == '"' ? 2 : 1, c);
  return text + "\"";
}

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && sqlite3_strnicmp(a.data(), b.data(), static_cast<int>(a.size())) == 0;
}

std::string text_at(sqlite3_stmt* statement, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  if (text == nullptr) return "";
  return std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
}

}  // namespace

Database::Database(Input& input, Sink& sink, std::uint64_t plain_bytes)
    : input_(input), sink_(sink), plain_bytes_(plain_bytes), vfs_(input, plain_bytes) {}

Database::~Database() {
  for (const auto& [sql, statement] : lookups_) sqlite3_finalize(statement);
  sqlite3_close(connection_);
  sqlite3_hard_heap_limit64(hard_heap_before_);  // they hold for the whole process
  sqlite3_soft_heap_limit64(soft_heap_before_);
}

Result<std::unique_ptr<Database>> Database::open(Input& input, Sink& sink) {
  LLMPROF_LET(const std::uint64_t plain_bytes, input.plain_bytes());
  LLMPROF_LET(const HeaderFacts header, check_header(input, plain_bytes));
  if (header.truncated)
    sink.lose(trace::Loss::kInputTruncated, 1,
              fmt::format("the file ends at byte {} of {}", plain_bytes, header.bytes));
  if (header.wal)
    sink.lose(trace::Loss::kInputIgnored, 1, "the database is in WAL mode: a file -wal beside it was not read");
  std::unique_ptr<Database> database(new Database(input, sink, plain_bytes));
  if (header.truncated) database->vfs_.cut_to_pages(plain_bytes / header.page_bytes);
  LLMPROF_TRY(database->set_up());
  LLMPROF_TRY(database->read_schema());
  return database;
}

Result<void> Database::set_up() {
  soft_heap_before_ = sqlite3_soft_heap_limit64(-1);
  hard_heap_before_ = sqlite3_hard_heap_limit64(kHeapBytes);
  const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
  if (sqlite3_open_v2("input", &connection_, flags, InputVfs::kName) != SQLITE_OK)
    return damage("the database cannot be opened");
  harden(connection_);
  sqlite3_progress_handler(
      connection_, kInstructionsPerCheck, [](void* self) { return static_cast<Database*>(self)->go_on() ? 0 : 1; },
      this);
  return {};
}

// Called by SQLite now and then. A table that never gives a row (one whose pages point at each other, say) must end.
bool Database::go_on() {
  const double now_s = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  if (rows_given_ != rows_seen_ || result_at_cpu_s_ == 0) {
    rows_seen_ = rows_given_;
    result_at_cpu_s_ = now_s;
  }
  out_of_time_ = now_s - result_at_cpu_s_ > kMaxCpuSecondsPerRow;
  const double share =
      plain_bytes_ == 0 ? 0 : static_cast<double>(vfs_.bytes_read()) / static_cast<double>(plain_bytes_);
  const auto done = static_cast<std::uint64_t>(std::min(share, 1.0) * static_cast<double>(input_.file_bytes()));
  interrupted_ = interrupted_ || !sink_.progress(done);
  return !out_of_time_ && !interrupted_;
}

Error Database::damage(std::string_view what) {
  if (interrupted_) return Error{ErrorCode::kInterrupted, "interrupted", ""};
  std::string why = !vfs_.error().empty() ? vfs_.error() : out_of_time_ ? "no row within 60 s of CPU time" : "";
  if (why.empty()) why = connection_ == nullptr ? "out of memory" : sqlite3_errmsg(connection_);
  return Error{ErrorCode::kCorruptInput, fmt::format("{}: {}", what, why),
               "export the report again: nsys export --type sqlite --output NEW.sqlite REPORT.nsys-rep"};
}

sqlite3_stmt* Database::prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(connection_, sql.c_str(), static_cast<int>(sql.size()), &statement, nullptr);
  return statement;
}

Result<void> Database::read_schema() {
  sqlite3_stmt* statement = prepare("SELECT type, name, tbl_name, sql FROM sqlite_master");
  if (statement == nullptr) return damage("byte 0: the list of tables cannot be read");
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW && schema_.size() < kMaxTables)
    schema_.emplace(text_at(statement, 1), Entry{text_at(statement, 0), text_at(statement, 2), text_at(statement, 3)});
  sqlite3_finalize(statement);
  if (code != SQLITE_DONE && code != SQLITE_ROW) return damage("byte 0: the list of tables cannot be read");
  if (schema_.size() >= kMaxTables)
    return Error{ErrorCode::kCorruptInput, fmt::format("byte 0: more than {} tables", kMaxTables), ""};
  return {};
}

std::vector<std::string> Database::tables() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : schema_) {
    if (entry.type == "table" && !name.starts_with("sqlite_")) names.push_back(name);
  }
  return names;
}

std::string Database::find_table(std::string_view name) const {
  std::string newest;
  for (const auto& [found, entry] : schema_) {
    if (entry.type != "table") continue;
    if (same(found, name)) return found;
    const bool versioned = found.size() == name.size() + 3 &&
                           same(found.substr(0, name.size() + 2), std::string(name) + "_V") && found.back() >= '2' &&
                           found.back() <= '9';
    if (versioned && found > newest) newest = found;
  }
  return newest;
}

Result<void> Database::refuse_disguises(std::span<const char* const> tables) {
  for (const auto& named : schema_) {
    const std::string& name = named.first;
    const Entry& entry = named.second;
    const auto is_meant = [&](const char* table) { return same(name, table) || same(entry.table, table); };
    if (entry.type == "index" || std::ranges::none_of(tables, is_meant)) continue;
    const bool is_virtual = sqlite3_strnicmp(entry.sql.c_str(), "CREATE VIRTUAL", 14) == 0;
    if (entry.type == "table" && !is_virtual) continue;
    return Error{ErrorCode::kCorruptInput,
                 entry.type == "trigger"
                     ? fmt::format("table {}: it has a trigger ({})", entry.table, name)
                     : fmt::format("table {}: it is a {}, not a table", name, is_virtual ? "virtual table" : "view"),
                 "Nsight Systems writes plain tables; export the report again"};
  }
  return {};
}

Result<std::vector<std::string>> Database::columns_of(const std::string& table) {
  sqlite3_stmt* statement = prepare("PRAGMA table_xinfo(" + in_quotes(table) + ")");
  if (statement == nullptr) return damage("table " + table);
  std::vector<std::string> columns;
  bool generated = false;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    columns.push_back(text_at(statement, 1));
    generated = generated || sqlite3_column_int(statement, 6) != 0;  // hidden or generated
  }
  sqlite3_finalize(statement);
  if (code != SQLITE_DONE) return damage("table " + table);
  if (generated)
    return Error{ErrorCode::kCorruptInput, "table " + table + ": it has generated columns",
                 "Nsight Systems writes plain tables; export the report again"};
  return columns;
}

Result<Rows> Database::rows(std::string_view table, std::initializer_list<const char*> columns, std::size_t needed) {
  const std::string found = find_table(table);
  if (found.empty()) return Rows();
  LLMPROF_LET(const std::vector<std::string> present, columns_of(found));
  std::string sql = "SELECT _rowid_";
  std::size_t index = 0;
  for (const char* column : columns) {
    const bool there = std::ranges::any_of(present, [&](const std::string& name) { return same(name, column); });
    if (!there && index < needed)
      return Error{ErrorCode::kUnsupported, fmt::format("table {}: it has no column {}", found, column),
                   "export the report again with another version of Nsight Systems"};
    sql += there ? ", " + in_quotes(column) : ", NULL";
    ++index;
  }
  sql += " FROM " + in_quotes(found) + " NOT INDEXED WHERE _rowid_ > ?1";
  sqlite3_stmt* statement = prepare(sql);
  if (statement == nullptr) return damage("table " + found);
  sqlite3_bind_int64(statement, 1, INT64_MIN);
  return Rows(*this, statement, found);
}

std::int64_t Database::size_of(std::string_view table) {
  const std::string found = find_table(table);
  if (found.empty()) return 0;
  sqlite3_stmt* statement = prepare("SELECT _rowid_ FROM " + in_quotes(found) + " ORDER BY _rowid_ DESC LIMIT 1");
  const bool there = statement != nullptr && sqlite3_step(statement) == SQLITE_ROW;
  const std::int64_t size = there ? sqlite3_column_int64(statement, 0) : 0;
  sqlite3_finalize(statement);
  return std::max<std::int64_t>(size, 0);
}

std::optional<std::string> Database::text_of(std::string_view table, const char* key_column, std::int64_t key,
                                             const char* column) {
  const std::string sql =
      "SELECT " + in_quotes(column) + " FROM " + in_quotes(table) + " WHERE " + in_quotes(key_column) + " = ?1";
  auto [lookup, is_new] = lookups_.try_emplace(sql, nullptr);
  if (is_new) lookup->second = prepare(sql);
  sqlite3_stmt* statement = lookup->second;
  if (statement == nullptr) return std::nullopt;
  sqlite3_bind_int64(statement, 1, key);
  std::optional<std::string> text;
  if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_type(statement, 0) != SQLITE_NULL)
    text = text_at(statement, 0);
  sqlite3_reset(statement);
  return text;
}

}  // namespace llmprof::importers::nsys
