#include "analyze/rules/facts/experts.h"

#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {

Result<std::vector<StageExperts>> expert_facts(const trace::Run& run) {
  std::vector<StageExperts> out;
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/expert_balance"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    out.push_back({.stage = row.text("stage"),
                   .layers = row.integer("layers"),
                   .experts = row.integer("experts"),
                   .passes = row.integer("passes"),
                   .most_rows = row.real("most_rows"),
                   .mean_rows = row.real("mean_rows"),
                   .worst_layer = row.text("worst_layer"),
                   .worst_ratio = row.real("worst_ratio"),
                   .devices = row.integer("devices"),
                   .time_ns = row.real("time_ns"),
                   .slowest_ns = row.real("slowest_ns"),
                   .balanced_ns = row.real("balanced_ns")});
  }
  return out;
}

}  // namespace llmprof::analyze
