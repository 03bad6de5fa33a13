#include "analyze/rules/facts/launches.h"

#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {

Result<std::vector<StageLaunches>> stage_launches(const trace::Run& run) {
  std::vector<StageLaunches> out;
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/stage_launches"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    out.push_back({row.text("stage"), row.integer("launches"), row.integer("timed"), row.integer("call_ns")});
  }
  return out;
}

}  // namespace llmprof::analyze
