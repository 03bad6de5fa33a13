#include "analyze/rules/facts/host_waits.h"

#include <algorithm>

#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {

const StageWaits* HostWaits::of(std::string_view stage) const {
  const auto found =
      std::find_if(stages.begin(), stages.end(), [&](const StageWaits& each) { return each.stage == stage; });
  return found == stages.end() ? nullptr : &*found;
}

Result<HostWaits> host_waits(const trace::Run& run) {
  HostWaits out;
  LLMPROF_LET(const trace::ResultTable any, run.query("SELECT count(*) FROM (SELECT 1 FROM api LIMIT 1)"));
  out.recorded = any.rows[0][0].as_int() > 0;
  if (!out.recorded) return out;
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/stage_waits"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    if (out.stages.empty() || out.stages.back().stage != row.text("stage"))
      out.stages.push_back({.stage = row.text("stage"), .function = row.text("name")});
    StageWaits& stage = out.stages.back();
    stage.calls += row.integer("calls");
    stage.steps = std::max(stage.steps, row.integer("steps"));
    stage.time_ns += row.integer("time_ns");
  }
  return out;
}

}  // namespace llmprof::analyze
