#include "importers/nsys_sqlite/database.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <ctime>

#include "trace/run.h"

namespace llmprof::importers::nsys {
namespace {

// The limits that an untrusted database is read under.
constexpr std::int64_t kHeapBytes = 64 << 20;  // of SQLite, in all
constexpr int kMaxValueBytes = 16 << 20;       // of a row; larger ones are passed over
constexpr std::size_t kMaxTables = 4096;

struct HeaderFacts {
  std::uint64_t page_bytes = 0;
  std::uint64_t bytes = 0;  // that the header says the file has
  bool truncated = false;
  bool wal = false;
};

constexpr std::size_t kHeaderBytes = 100;
constexpr std::string_view kMagic("SQLite format 3\0", 16);

std::uint32_t big_endian(const char* bytes, int count) {
  std::uint32_t value = 0;
  for (int i = 0; i < count; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// SELECT of columns of tables, and the one PRAGMA that tells columns; no function, no view, no recursion.
int allow(void*, int action, const char* first, const char*, const char*, const char* inside) {
  if (action == SQLITE_SELECT) return SQLITE_OK;
  if (action == SQLITE_READ) return inside == nullptr ? SQLITE_OK : SQLITE_DENY;
  if (action == SQLITE_PRAGMA) return std::strcmp(first, "table_xinfo") == 0 ? SQLITE_OK : SQLITE_DENY;
  return SQLITE_DENY;
}

void set_limits(sqlite3* connection) {
  constexpr int kLimits[][2] = {
      {SQLITE_LIMIT_LENGTH, kMaxValueBytes}, {SQLITE_LIMIT_SQL_LENGTH, 1 << 20}, {SQLITE_LIMIT_COLUMN, 512},
      {SQLITE_LIMIT_EXPR_DEPTH, 64},         {SQLITE_LIMIT_COMPOUND_SELECT, 2},  {SQLITE_LIMIT_VDBE_OP, 25'000},
      {SQLITE_LIMIT_FUNCTION_ARG, 8},        {SQLITE_LIMIT_ATTACHED, 0},         {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 64},
      {SQLITE_LIMIT_VARIABLE_NUMBER, 8},     {SQLITE_LIMIT_TRIGGER_DEPTH, 1},    {SQLITE_LIMIT_WORKER_THREADS, 0}};
  for (const auto& [limit, value] : kLimits) sqlite3_limit(connection, limit, value);
}

constexpr std::size_t kReadAhead = 256 << 10;

struct File {
  sqlite3_file base;
  InputVfs* vfs;
};

int read_file(sqlite3_file* file, void* out, int size, sqlite3_int64 offset) {
  if (size < 0 || offset < 0) return SQLITE_IOERR_READ;
  return reinterpret_cast<File*>(file)->vfs->read(static_cast<char*>(out), static_cast<std::size_t>(size),
                                                  static_cast<std::uint64_t>(offset));
}

int size_of_file(sqlite3_file* file, sqlite3_int64* size) {
  *size = static_cast<sqlite3_int64>(reinterpret_cast<File*>(file)->vfs->size());
  return SQLITE_OK;
}

// A file that can be read, in a world without other files.
const sqlite3_io_methods kMethods{
    .iVersion = 1,  // no shared memory, no mapping
    .xClose = [](sqlite3_file*) { return SQLITE_OK; },
    .xRead = read_file,
    .xWrite = [](sqlite3_file*, const void*, int, sqlite3_int64) { return SQLITE_READONLY; },
    .xTruncate = [](sqlite3_file*, sqlite3_int64) { return SQLITE_READONLY; },
    .xSync = [](sqlite3_file*, int) { return SQLITE_OK; },
    .xFileSize = size_of_file,
    .xLock = [](sqlite3_file*, int) { return SQLITE_OK; },
    .xUnlock = [](sqlite3_file*, int) { return SQLITE_OK; },
    .xCheckReservedLock = [](sqlite3_file*, int* reserved) { return *reserved = 0, SQLITE_OK; },
    .xFileControl = [](sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; },
    .xSectorSize = [](sqlite3_file*) { return 4096; },
    .xDeviceCharacteristics = [](sqlite3_file*) { return SQLITE_IOCAP_IMMUTABLE; },
};

int open_file(sqlite3_vfs* vfs, const char*, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  if ((flags & SQLITE_OPEN_MAIN_DB) == 0) return SQLITE_CANTOPEN;  // journals, temporary files
  auto* opened = reinterpret_cast<File*>(file);
  opened->vfs = static_cast<InputVfs*>(vfs->pAppData);
  opened->base.pMethods = &kMethods;
  if (out_flags != nullptr) *out_flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB;
  return SQLITE_OK;
}

constexpr double kMaxCpuSecondsPerRow = 60;
constexpr int kInstructionsPerCheck = 200'000;

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && sqlite3_strnicmp(a.data(), b.data(), static_cast<int>(a.size())) == 0;
}

std::string text_at(sqlite3_stmt* statement, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  if (text == nullptr) return "";
  return std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
}

Result<HeaderFacts> check_header(Input& input, std::uint64_t plain_bytes) {
  std::array<char, kHeaderBytes> header{};
  LLMPROF_LET(const std::size_t got, input.read_at(0, header.data(), header.size()));
  if (got < kHeaderBytes || std::string_view(header.data(), kMagic.size()) != kMagic)
    return Error{ErrorCode::kCorruptInput, "byte 0: this is no SQLite database",
                 "an export is made by: nsys export --type sqlite --output NAME.sqlite REPORT.nsys-rep"};
  HeaderFacts facts;
  const std::uint32_t stored = big_endian(&header[16], 2);
  facts.page_bytes = stored == 1 ? 65536 : stored;
  if (facts.page_bytes < 512 || !std::has_single_bit(facts.page_bytes))
    return Error{ErrorCode::kCorruptInput, fmt::format("byte 16: a page size of {} bytes", facts.page_bytes),
                 "the file is damaged; export the report again"};
  // The number of pages holds only where the writer kept it up to date, which is what bytes 24 and 92 tell.
  const bool known = std::memcmp(&header[24], &header[92], 4) == 0;
  facts.bytes = known ? big_endian(&header[28], 4) * facts.page_bytes : 0;
  facts.truncated = facts.bytes > plain_bytes;
  facts.wal = header[18] == 2 || header[19] == 2;
  return facts;
}

// Nothing but reading tables is allowed from now on.
void harden(sqlite3* connection) {
  constexpr int kSwitches[][2] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                  {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                  {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                  {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                                  {SQLITE_DBCONFIG_DQS_DDL, 0},
                                  {SQLITE_DBCONFIG_DQS_DML, 0},
                                  {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0}};
  for (const auto& [what, value] : kSwitches) sqlite3_db_config(connection, what, value, nullptr);
  set_limits(connection);
  for (const char* pragma : {"PRAGMA cell_size_check = ON", "PRAGMA mmap_size = 0", "PRAGMA query_only = ON",
                             "PRAGMA temp_store = MEMORY", "PRAGMA cache_size = -4096"})
    sqlite3_exec(connection, pragma, nullptr, nullptr, nullptr);
  sqlite3_set_authorizer(connection, allow, nullptr);
}

}  // namespace

InputVfs::InputVfs(Input& input, std::uint64_t plain_bytes) : input_(input), size_(plain_bytes) {
  vfs_.iVersion = 1;
  vfs_.szOsFile = sizeof(File);
  vfs_.mxPathname = 256;
  vfs_.zName = kName;
  vfs_.pAppData = this;
  vfs_.xOpen = open_file;
  vfs_.xDelete = [](sqlite3_vfs*, const char*, int) { return SQLITE_READONLY; };
  vfs_.xAccess = [](sqlite3_vfs*, const char*, int, int* answer) { return *answer = 0, SQLITE_OK; };
  vfs_.xFullPathname = [](sqlite3_vfs*, const char* name, int room, char* out) {
    return sqlite3_snprintf(room, out, "%s", name), SQLITE_OK;
  };
  vfs_.xRandomness = [](sqlite3_vfs*, int size, char* out) {
    return std::memset(out, 0, static_cast<std::size_t>(std::max(size, 0))), size;
  };
  vfs_.xSleep = [](sqlite3_vfs*, int) { return 0; };
  vfs_.xCurrentTime = [](sqlite3_vfs*, double* days) { return *days = 0, SQLITE_OK; };
  vfs_.xGetLastError = [](sqlite3_vfs*, int, char*) { return 0; };
  sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);  // one thread reads here: no locks, where nothing used SQLite before
  sqlite3_vfs_register(&vfs_, 0);
}

InputVfs::~InputVfs() { sqlite3_vfs_unregister(&vfs_); }

bool InputVfs::fill(std::uint64_t offset, std::size_t wanted) {
  ahead_.resize(wanted);
  ahead_offset_ = offset;
  std::size_t have = 0;
  while (have < wanted) {
    const auto got = input_.read_at(offset + have, ahead_.data() + have, wanted - have);
    if (!got) {
      error_ = got.error().message;
      ahead_.clear();
      return false;
    }
    if (*got == 0) break;
    have += *got;
  }
  ahead_.resize(have);
  bytes_read_ += have;
  return true;
}

void InputVfs::patch_page_count(char* out, std::size_t size, std::uint64_t offset) const {
  constexpr std::uint64_t kPlace = 28;
  for (std::uint64_t i = 0; i < 4; ++i) {
    const std::uint64_t at = kPlace + i;
    if (at >= offset && at - offset < size) out[at - offset] = static_cast<char>(pages_ >> (8 * (3 - i)) & 0xff);
  }
}

int InputVfs::read(char* out, std::size_t size, std::uint64_t offset) {
  const bool held = offset >= ahead_offset_ && offset - ahead_offset_ <= ahead_.size() &&
                    size <= ahead_.size() - (offset - ahead_offset_);
  if (!held) {
    const std::size_t wanted = offset == next_offset_ ? std::max(size, kReadAhead) : size;
    if (!fill(offset, wanted)) return SQLITE_IOERR_READ;
  }
  next_offset_ = offset + size;
  const std::size_t skip = offset - ahead_offset_;
  const std::size_t have = std::min(size, ahead_.size() - std::min(skip, ahead_.size()));
  std::memcpy(out, ahead_.data() + skip, have);
  if (pages_ != 0) patch_page_count(out, have, offset);
  if (have == size) return SQLITE_OK;
  std::memset(out + have, 0, size - have);  // as SQLite asks for
  return SQLITE_IOERR_SHORT_READ;
}

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
  sqlite3_stmt* statement = prepare("PRAGMA table_xinfo(" + trace::sql_identifier(table) + ")");
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
    sql += there ? ", " + trace::sql_identifier(column) : ", NULL";
    ++index;
  }
  sql += " FROM " + trace::sql_identifier(found) + " NOT INDEXED WHERE _rowid_ > ?1";
  sqlite3_stmt* statement = prepare(sql);
  if (statement == nullptr) return damage("table " + found);
  sqlite3_bind_int64(statement, 1, INT64_MIN);
  return Rows(*this, statement, found);
}

std::int64_t Database::size_of(std::string_view table) {
  const std::string found = find_table(table);
  if (found.empty()) return 0;
  sqlite3_stmt* statement =
      prepare("SELECT _rowid_ FROM " + trace::sql_identifier(found) + " ORDER BY _rowid_ DESC LIMIT 1");
  const bool there = statement != nullptr && sqlite3_step(statement) == SQLITE_ROW;
  const std::int64_t size = there ? sqlite3_column_int64(statement, 0) : 0;
  sqlite3_finalize(statement);
  return std::max<std::int64_t>(size, 0);
}

std::optional<std::string> Database::text_of(std::string_view table, const char* key_column, std::int64_t key,
                                             const char* column) {
  const std::string sql = "SELECT " + trace::sql_identifier(column) + " FROM " + trace::sql_identifier(table) +
                          " WHERE " + trace::sql_identifier(key_column) + " = ?1";
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
