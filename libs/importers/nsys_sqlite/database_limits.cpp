#include "importers/nsys_sqlite/database_limits.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

namespace llmprof::importers::nsys {
namespace {

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

}  // namespace

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

}  // namespace llmprof::importers::nsys
