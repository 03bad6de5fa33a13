#pragma once
// Is a Parquet file what its table says? Asked from its metadata alone, before a single value is read.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trace/database.h"
#include "trace/run_info.h"

namespace llmprof::trace {

// A file of a table, as the engine is to open it.
struct OpenFile {
  TableFile listed;
  std::string path;
};

// Columns that the files of each table have, of those the schema knows. Refuses columns of another type, nested
// columns, foreign compression, other row counts, and parts of a table that differ.
using ColumnsOfTables = std::map<std::string, std::set<std::string, std::less<>>, std::less<>>;
Result<ColumnsOfTables> check_parquet(const Connection& connection, const std::vector<OpenFile>& files);

std::string_view sql_type(const struct Column& column);  // "BIGINT", …

}  // namespace llmprof::trace
