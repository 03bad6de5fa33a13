// The options of `record` that choose a part of the program's run.

#include "analyze/names/ranges.h"
#include "record_verb.h"
#include "verb.h"

namespace llmprof::app {
namespace {

Result<void> read_duration(const Arguments& arguments, std::string_view flag, std::optional<std::int64_t>& out) {
  if (arguments.get(flag).empty()) return {};
  LLMPROF_LET(out, record::parse_duration(arguments.get(flag)));
  return {};
}

// The names by which the analysis knows a step; also the training step that has no stage of its own. Loading and
// warming up come before the steps that a user counts.
Result<void> add_step_names(const Arguments& arguments, record::WindowOptions& window) {
  LLMPROF_LET(const std::vector<analyze::RangePattern> patterns, analyze::range_patterns(arguments.get("--ranges")));
  for (const analyze::RangePattern& row : patterns) {
    if (row.stage == "load" || row.stage == "warm-up") continue;
    if (row.container && (row.stage.empty() || row.stage == "training")) {
      window.step_names.push_back(row.pattern);
    } else if (row.kind == analyze::RangeKind::kStep) {
      window.plain_step_names.push_back(row.pattern);
    }
  }
  return {};
}

}  // namespace

Result<record::WindowOptions> window_options(const Arguments& arguments) {
  record::WindowOptions window;
  LLMPROF_TRY(read_duration(arguments, "--delay", window.delay_ns));
  LLMPROF_TRY(read_duration(arguments, "--duration", window.duration_ns));
  LLMPROF_TRY(read_duration(arguments, "--last", window.last_ns));
  window.start_range = arguments.get("--start-range");
  window.control = arguments.get("--control");
  window.start_stopped = arguments.on("--start-stopped");
  window.profiler_api = arguments.on("--profiler-api");
  if (const std::string steps = arguments.get("--steps"); !steps.empty()) {
    LLMPROF_LET(window.steps, record::parse_steps(steps));
  }
  if (const std::string name = arguments.get("--step-range"); !name.empty()) {
    if (!window.steps) return Error{ErrorCode::kUsage, "--step-range says what a step is", "use it with --steps"};
    window.step_names = {name};
    window.declared_steps = false;
  } else {
    LLMPROF_TRY(add_step_names(arguments, window));
  }
  LLMPROF_TRY(record::check(window));
  return window;
}

}  // namespace llmprof::app
