#pragma once
// The tables that a table exporter writes, and their rows.

#include <functional>
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

// Writes tables one after the other, and tells the progress. Ctrl-C ends it with kInterrupted.
class TableWriter {
 public:
  TableWriter(const Request& request, const std::vector<ExportTable>& tables) : request_(request), tables_(tables) {}
  Result<void> each_table(const std::function<Result<void>(const ExportTable&)>& write);
  // The rows of one of them, after the names of its columns. `row` returns false when no more are wanted.
  Result<void> each_row(const ExportTable& table, const trace::ColumnSink& head, const trace::RowSink& row);
  std::int64_t rows() const { return rows_; }

 private:
  Result<void> report();
  const Request& request_;
  const std::vector<ExportTable>& tables_;
  std::size_t begun_ = 0;
  std::int64_t rows_ = 0;
};

// A cell as text that reads back to the same value; "" for NULL.
std::string plain_text(const trace::Value& value);

}  // namespace llmprof::exporters
