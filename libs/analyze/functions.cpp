#include "analyze/functions.h"

#include <map>
#include <utility>

#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "analyze/sampled_loops.h"

namespace llmprof::analyze {
namespace {

Result<StackCoverage> read_coverage(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/function_coverage"));
  const RowView row{table, 0};
  return StackCoverage{.samples = row.integer("samples"),
                       .truncated = row.integer("truncated"),
                       .without_stack = row.integer("without_stack"),
                       .lost = row.integer("lost"),
                       .sampled_ns = row.integer("sampled_ns"),
                       .why = row.text("why")};
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
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/functions"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    Function function{.name = row.text("function"),
                      .file = row.text("file"),
                      .kind = row.text("kind"),
                      .stage = row.text("stage"),
                      .samples = row.integer("samples"),
                      .self_ns = row.integer("self_ns"),
                      .total_ns = row.integer("total_ns")};
    const auto known = calls.find({function.stage, function.name});
    if (known != calls.end()) function.calls = known->second;
    const auto sampled_ns = static_cast<double>(row.integer("sampled_ns"));
    if (sampled_ns > 0) function.self_share = static_cast<double>(function.self_ns) / sampled_ns;
    host.functions.push_back(std::move(function));
  }
  return fill_sampled_stages(run, host);
}

}  // namespace llmprof::analyze
