#include "analyze/functions.h"

#include <map>
#include <utility>

#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "analyze/sampled_loops.h"

namespace llmprof::analyze {
namespace {

Result<StackCoverage> read_coverage(const trace::Run& run) {
  LLMPROF_LET(StackCoverage stacks, ask_row<StackCoverage>(run, "sql/function_coverage"));
  if (stacks.samples > 0)
    stacks.truncated_share = static_cast<double>(stacks.truncated) / static_cast<double>(stacks.samples);
  return stacks;
}

using Calls = std::map<std::pair<std::string, std::string>, std::int64_t>;  // by stage and function

Result<Calls> read_calls(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/function_calls"));
  Calls calls;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    calls[{row.text("stage"), row.text("function")}] = row.integer("calls");
  }
  return calls;
}

}  // namespace

Result<void> fill_functions(const trace::Run& run, Host& host) {
  LLMPROF_LET(host.stacks, read_coverage(run));
  if (host.stacks.samples == 0) return {};
  LLMPROF_LET(const Calls calls, read_calls(run));
  LLMPROF_LET(host.functions, ask_rows<Function>(run, "sql/functions"));
  for (Function& function : host.functions) {
    const auto known = calls.find({function.stage, function.name});
    if (known != calls.end()) function.calls = known->second;
    if (function.sampled_ns > 0)
      function.self_share = static_cast<double>(function.self_ns) / static_cast<double>(function.sampled_ns);
  }
  LLMPROF_TRY(fill_sampled_stages(run, host));
  const auto all_ns = static_cast<double>(host.stacks.sampled_ns);
  for (SampledStage& stage : host.sampled_stages) {
    if (all_ns > 0) stage.share = static_cast<double>(stage.time_ns) / all_ns;
    if (stage.passes) stage.pass_ns = stage.time_ns / std::max<std::int64_t>(1, *stage.passes);
    for (SampledPart& part : stage.parts) part.share = all_ns > 0 ? static_cast<double>(part.time_ns) / all_ns : 0;
  }
  return {};
}

}  // namespace llmprof::analyze
