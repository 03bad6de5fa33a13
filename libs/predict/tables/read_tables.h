#pragma once
// Operator tables from a folder of CSV or Parquet files: those that LLMServingSim publishes, and any in their format
// (dense, per_sequence, attention, moe, all_reduce, skew_fit: see table_kinds()).

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "predict/tables/tables.h"

namespace llmprof::predict {

// The tables of one degree of tensor parallelism. Files are found by what their names contain, in the folder and two
// levels below it: attention.csv, ops_tp2_dense.csv.gz, tp4/moe.csv. Names without a degree serve where no name has
// one. A degree that is not there is an error that lists those that are. `times` is the column of times: tables of
// `llmprof bench --for` also have "graph_us".
Result<OperatorTables> read_tables(const std::string& folder, std::int64_t tensor, std::string_view times = "time_us");

// One CSV text; `where` names it in errors.
Result<void> read_table_text(const TableKind& kind, std::string_view text, const std::string& where,
                             OperatorTables& tables);

// The degree that a path below the folder says ("ops_tp2_dense.csv", "tp4/moe.csv"); 0: none.
std::int64_t tensor_of_path(std::string_view path);

}  // namespace llmprof::predict
