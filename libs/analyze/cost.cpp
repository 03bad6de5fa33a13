#include "analyze/cost.h"

#include <algorithm>

#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {
namespace {

std::optional<double> delay_ns(const CollectorCost& cost, std::int64_t range_events, std::int64_t gemm_events) {
  if (range_events == 0 && gemm_events == 0) return 0;
  if (!cost.range_event_ns || !cost.gemm_event_ns) return std::nullopt;
  return static_cast<double>(range_events) * *cost.range_event_ns +
         static_cast<double>(gemm_events) * *cost.gemm_event_ns;
}

std::optional<double> share_of(std::optional<double> part_ns, std::int64_t whole_ns) {
  if (!part_ns || whole_ns <= 0) return std::nullopt;
  return *part_ns / static_cast<double>(whole_ns);
}

// Events delay the thread that raises them, so a stage's delay is held against its steps added up over all threads.
Result<void> fill_stages(const trace::Run& run, Summary& summary) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/cost_stages"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    StageCost cost{.stage = row.text("stage"),
                   .range_events = row.integer("range_events"),
                   .gemm_events = row.integer("gemm_events")};
    const auto stage = std::find_if(summary.stages.begin(), summary.stages.end(),
                                    [&](const Stage& known) { return known.name == cost.stage; });
    if (stage == summary.stages.end()) continue;
    cost.delay_ns = delay_ns(summary.cost, cost.range_events, cost.gemm_events);
    cost.share = share_of(cost.delay_ns, stage->steps_ns);
    cost.flagged = cost.share && *cost.share > kFlaggedShare;
    summary.cost.stages.push_back(std::move(cost));
  }
  return {};
}

}  // namespace

Result<void> fill_cost(const trace::Run& run, Summary& summary) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/cost"));
  const RowView row{table, 0};
  CollectorCost& cost = summary.cost;
  cost.recorder_cpu_ns = run.info().recorder_cpu_ns;
  // A recording in which no process raised an event has nothing to note.
  cost.known = row.integer("processes") > 0 || cost.recorder_cpu_ns;
  if (!cost.known) {
    cost.why = "the run does not say";
    return {};
  }
  cost.range_events = row.integer("range_events");
  cost.gemm_events = row.integer("gemm_events");
  cost.gpu_events = row.integer("gpu_events");
  cost.log_bytes = row.integer("log_bytes");
  cost.writer_cpu_ns = row.integer("writer_cpu_ns");
  cost.range_event_ns = row.maybe_real("range_event_ns");
  cost.gemm_event_ns = row.maybe_real("gemm_event_ns");
  cost.writer_share = share_of(static_cast<double>(cost.writer_cpu_ns), summary.coverage.wall_ns);
  cost.delay_ns = delay_ns(cost, cost.range_events, cost.gemm_events);
  cost.delay_share = share_of(cost.delay_ns, summary.coverage.wall_ns);
  if (!cost.delay_ns) cost.why = "what one event costs was not measured on this machine";
  return fill_stages(run, summary);
}

}  // namespace llmprof::analyze
