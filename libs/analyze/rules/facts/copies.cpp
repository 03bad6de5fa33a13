#include "analyze/rules/facts/copies.h"

#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {

Result<HostCopies> host_copies(const trace::Run& run) {
  HostCopies out;
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/stage_copies"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    out.stages.push_back({.stage = row.text("stage"),
                          .direction = row.text("direction"),
                          .host_memory = row.text("host_memory"),
                          .copies = row.integer("copies"),
                          .steps = row.integer("steps"),
                          .bytes = row.integer("bytes"),
                          .largest_bytes = row.integer("largest_bytes"),
                          .time_ns = row.integer("time_ns"),
                          .call_ns = row.integer("call_ns")});
  }
  LLMPROF_LET(const trace::ResultTable rates, ask(run, "sql/pinned_rates"));
  for (std::size_t i = 0; i < rates.rows.size(); ++i) {
    const RowView row{rates, i};
    out.pinned_rate[row.text("direction")] = row.real("bytes_per_s");
  }
  return out;
}

}  // namespace llmprof::analyze
