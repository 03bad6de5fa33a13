#pragma once
// The tables that a table exporter writes, and their rows.

#include <string>
#include <vector>

#include "exporters/exporter.h"
#include "trace/schema.h"

namespace llmprof::exporters {

struct ExportTable {
  std::string name;
  const trace::Table* table = nullptr;  // nullptr: a view (kernel_all, work), whose columns the query tells
  std::string sql;                      // its selected rows
};

// Those asked for, or all that have rows. An unknown name is an error that lists the known ones.
Result<std::vector<ExportTable>> tables_to_write(const Request& request);

// Called before every table and every 64 Ki rows; false after Ctrl-C.
class TableProgress {
 public:
  TableProgress(const Request& request, std::size_t tables) : request_(request), tables_(tables) {}
  bool begin_table() { return report(static_cast<double>(begun_++)); }
  bool row() { return (++rows_ & 0xFFFF) != 0 || report(static_cast<double>(begun_)); }
  std::int64_t rows() const { return rows_; }

 private:
  bool report(double done) {
    going_ = going_ && request_.progress({"writing tables", done, static_cast<double>(tables_), "tables"});
    return going_;
  }
  const Request& request_;
  std::size_t tables_, begun_ = 0;
  std::int64_t rows_ = 0;
  bool going_ = true;
};

// A cell as text that reads back to the same value; "" for NULL.
std::string plain_text(const trace::Value& value);

}  // namespace llmprof::exporters
