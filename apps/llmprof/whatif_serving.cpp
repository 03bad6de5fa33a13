#include "whatif_serving.h"

#include <fmt/format.h>

#include <algorithm>

#include "predict/serving_change.h"
#include "report/design/whatif.h"
#include "report_verb.h"
#include "serving_options.h"

namespace llmprof::app {
namespace {

constexpr std::string_view kServingFlags[] = {"--serving",  "--workload", "--rate", "--arrivals", "--concurrency",
                                              "--requests", "--new",      "--slo",  "--prefixes", "--seed"};

Error wrong(std::string message, std::string hint) {
  return Error{ErrorCode::kUsage, std::move(message), std::move(hint)};
}

Result<void> check_changes(const std::vector<std::string>& changes) {
  if (changes.empty())
    return wrong("whatif --serving wants a change", "llmprof whatif MODEL --serving vllm --rate 4 --set kv_heads=4");
  for (const std::string& change : changes) {
    const std::string key = change.substr(0, change.find('='));
    if (key == "batch")
      return wrong("--set batch: in a serving the scheduler makes the batches", "--set max_num_seqs=N limits them");
    if (key == "prompt" || key == "context")
      return wrong(fmt::format("--set {}: the workload says it, before and after", key),
                   "--prompt and --new, or --workload");
    if (key == "pp") return wrong("--set pp: pipeline parallelism cannot be predicted yet", "");
  }
  return {};
}

// The change's times stand on what the times before it stand on: measured times against floors would make any change
// look good.
Result<void> use_alike(predict::ServingInput& before, predict::ServingInput& after, bool given) {
  const bool same_device = before.device.device.name == after.device.device.name;
  // Tables that were asked for are of the model as it is, with its types.
  const bool of_before = given && before.parallel.tensor == after.parallel.tensor;
  if (before.tables.empty() == after.tables.empty() && !of_before) return {};
  if (same_device && (after.tables.empty() || of_before)) {
    after.notes = before.notes, after.other_tables = {};
    return predict::use_tables_of(after, before.tables, before.config, before.parallel);
  }
  const std::string note =
      "operator tables are known for one side only and are not used: measured times cannot be compared with floors";
  for (predict::ServingInput* side : {&before, &after}) {
    side->tables = {}, side->other_tables = {};
    side->notes = {note};
  }
  return {};
}

}  // namespace

bool asks_for_serving(const Arguments& arguments) {
  return std::ranges::any_of(kServingFlags, [&](std::string_view flag) { return arguments.given(flag); });
}

Result<std::string> whatif_serving_page(const Arguments& arguments) {
  const std::vector<std::string> changes = arguments.all("--set");
  LLMPROF_TRY(check_changes(changes));
  LLMPROF_LET(const predict::Deployment as_it_is, asked_deployment(arguments, {}));
  LLMPROF_LET(const predict::Deployment changed, asked_deployment(arguments, changes));
  LLMPROF_LET(predict::ServingInput before, asked_input(arguments, as_it_is));
  LLMPROF_LET(predict::ServingInput after, asked_input(arguments, changed));
  LLMPROF_TRY(use_alike(before, after, arguments.given("--tables")));
  LLMPROF_LET(before.workload, asked_workload(arguments));
  LLMPROF_LET(before.slo, asked_slo(arguments));
  after.workload = before.workload, after.slo = before.slo;
  LLMPROF_LET(const predict::ServingForecast was, predict::forecast_serving(before));
  LLMPROF_LET(const predict::ServingForecast is, predict::forecast_serving(after));
  report::WhatIfServingPage page{.change = predict::change_of(before, was, after, is)};
  page.change.changes = changes;
  return laid_out(page, arguments, "llmprof.whatif_serving");
}

}  // namespace llmprof::app
