// Rows of one table: see database.h.
#include <fmt/format.h>

#include <utility>

#include "importers/nsys_sqlite/database.h"

namespace llmprof::importers::nsys {

Rows::Rows(Rows&& other) noexcept
    : database_(other.database_),
      statement_(std::exchange(other.statement_, nullptr)),
      table_(std::move(other.table_)),
      rowid_(other.rowid_) {}

Rows::~Rows() { sqlite3_finalize(statement_); }

bool Rows::next() {
  odd_ = false;
  while (statement_ != nullptr) {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_DONE) return false;
    if (code != SQLITE_ROW) {
      if (!recover(code)) return false;
      continue;
    }
    ++database_->rows_given_;
    const std::int64_t rowid = sqlite3_column_int64(statement_, 0);
    if (rowid <= rowid_) {  // pages that point back at earlier ones would go on forever
      damaged("its rows are out of order");
      return false;
    }
    rowid_ = rowid;
    return true;
  }
  return false;
}

void Rows::damaged(std::string_view why) {
  database_->sink_.lose(trace::Loss::kInputDamaged, 1, fmt::format("the rest of table {}: {}", table_, why),
                        rowid_ == INT64_MIN ? "its first row" : fmt::format("row {}", rowid_));
  sqlite3_finalize(std::exchange(statement_, nullptr));
}

bool Rows::recover(int code) {
  if (database_->interrupted_) return false;
  if ((code & 0xff) == SQLITE_TOOBIG && pass_over()) return true;
  damaged(database_->out_of_time_ ? "no row within 60 s of CPU time" : sqlite3_errmsg(database_->connection_));
  return false;
}

// A row with a value too large to be read: goes on behind it.
bool Rows::pass_over() {
  const std::string sql = fmt::format("SELECT _rowid_ FROM \"{}\" WHERE _rowid_ > ?1 ORDER BY _rowid_ LIMIT 1", table_);
  sqlite3_stmt* find = database_->prepare(sql);
  sqlite3_bind_int64(find, 1, rowid_);
  const bool found = find != nullptr && sqlite3_step(find) == SQLITE_ROW && sqlite3_column_int64(find, 0) > rowid_;
  if (found) {
    rowid_ = sqlite3_column_int64(find, 0);
    database_->sink_.lose(trace::Loss::kInputLimit, 1, fmt::format("rows of more than 16 MiB in table {}", table_),
                          fmt::format("row {}", rowid_));
    sqlite3_reset(statement_);
    sqlite3_bind_int64(statement_, 1, rowid_);
  }
  sqlite3_finalize(find);
  return found;
}

// By sqlite3_value: one look-up per value instead of two. Such values are good for one thread, which is all there is.
std::optional<std::int64_t> Rows::integer(int column) {
  sqlite3_value* value = sqlite3_column_value(statement_, column + 1);
  const int type = sqlite3_value_type(value);
  if (type == SQLITE_INTEGER) return sqlite3_value_int64(value);
  odd_ = odd_ || type != SQLITE_NULL;
  return std::nullopt;
}

std::optional<double> Rows::number(int column) {
  sqlite3_value* value = sqlite3_column_value(statement_, column + 1);
  const int type = sqlite3_value_type(value);
  if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) return sqlite3_value_double(value);
  odd_ = odd_ || type != SQLITE_NULL;
  return std::nullopt;
}

std::optional<std::string_view> Rows::text(int column) {
  const int type = sqlite3_column_type(statement_, column + 1);
  if (type == SQLITE_NULL) return std::nullopt;
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column + 1));
  if (text == nullptr) return std::nullopt;  // out of memory
  return std::string_view(text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column + 1)));
}

void Rows::lose(trace::Loss loss, std::string_view what) {
  database_->sink_.lose(loss, 1, fmt::format("{} in table {}", what, table_), fmt::format("row {}", rowid_));
}

bool Rows::is_interval(std::optional<std::int64_t> start, std::optional<std::int64_t> end) {
  const bool typed = !odd_ && start && end;
  const bool good = typed && *end >= *start && is_time(*start) && is_time(*end);
  if (!typed) lose(trace::Loss::kInputDamaged, "values of a wrong type");
  if (typed && !good) lose(trace::Loss::kBadTime, "times");
  return good;
}

Result<void> Rows::finish() {
  if (database_ == nullptr) return {};
  if (database_->interrupted_ || !database_->go_on()) return database_->damage("table " + table_);
  return {};
}

}  // namespace llmprof::importers::nsys
