#include "analyze/rules/facts/graph_buckets.h"

#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {

Result<std::vector<GraphBucket>> graph_buckets(const trace::Run& run) {
  std::vector<GraphBucket> out;
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/graph_buckets"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    out.push_back({.stage = row.text("stage"),
                   .captured_rows = row.integer("captured_rows"),
                   .rows = row.integer("rows"),
                   .launches = row.integer("launches"),
                   .time_ns = row.integer("time_ns"),
                   .median_ns = row.integer("median_ns")});
  }
  return out;
}

}  // namespace llmprof::analyze
