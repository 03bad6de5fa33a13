#include "analyze/rules/facts/stage_bytes.h"

#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {

OperatorBytes StageBytes::all() const {
  OperatorBytes out;
  for (const OperatorBytes& op : operators) {
    out.flops += op.flops;
    out.weight_bytes += op.weight_bytes;
    out.kv_bytes += op.kv_bytes;
    out.activation_bytes += op.activation_bytes;
  }
  return out;
}

Result<std::vector<StageBytes>> stage_bytes(const trace::Run& run) {
  std::vector<StageBytes> out;
  LLMPROF_LET(const trace::ResultTable sizes, ask(run, "sql/stage_sizes"));
  for (std::size_t i = 0; i < sizes.rows.size(); ++i) {
    const RowView row{sizes, i};
    out.push_back({.stage = row.text("stage"),
                   .operators = {},
                   .batch = row.maybe_real("batch").value_or(0),
                   .tokens = row.maybe_real("tokens").value_or(0),
                   .context = row.maybe_real("context").value_or(0),
                   .largest_context = row.maybe_real("largest_context").value_or(0)});
  }
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/stage_operator_bytes"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    for (StageBytes& stage : out) {
      if (stage.stage != row.text("stage")) continue;
      stage.operators.push_back({.op = row.text("op"),
                                 .flops = row.real("flops"),
                                 .weight_bytes = row.real("weight_bytes"),
                                 .kv_bytes = row.real("kv_bytes"),
                                 .activation_bytes = row.real("activation_bytes")});
    }
  }
  return out;
}

const StageBytes* find_stage(const std::vector<StageBytes>& stages, std::string_view name) {
  for (const StageBytes& stage : stages) {
    if (stage.stage == name) return &stage;
  }
  return nullptr;
}

}  // namespace llmprof::analyze
