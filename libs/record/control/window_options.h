#pragma once
// Which part of a program's run is recorded: a window, or the end. As the user asks for it, as the collectors are told,
// and as the report says it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace llmprof::record {

struct StepSpan {
  std::optional<std::int64_t> first;  // none: from the beginning
  std::optional<std::int64_t> end;    // the first that is outside again; none: to the end
};

struct WindowOptions {
  std::optional<std::int64_t> delay_ns;     // after the start of the program
  std::optional<std::int64_t> duration_ns;  // of the window
  std::string start_range;                  // the window begins with the first range of this name; may hold '*'
  std::optional<StepSpan> steps;
  std::vector<std::string> step_names;        // what a step is called; may hold '*'
  std::vector<std::string> plain_step_names;  // the same, but not in domain llmprof: it says itself what is a step
  bool declared_steps = true;                 // ranges of category step in domain llmprof are steps too
  std::optional<std::int64_t> last_ns;        // keep only so much of the end
  std::string control;                        // socket through which recording is switched; "": none
  bool start_stopped = false;                 // with `control`
  bool profiler_api = false;                  // between cudaProfilerStart and cudaProfilerStop

  bool is_everything() const {
    return !delay_ns && !duration_ns && start_range.empty() && !steps && !last_ns && control.empty() && !profiler_api;
  }
};

// kUsage if they contradict each other.
Result<void> check(const WindowOptions& options);

// The environment of the collectors: name and value. `begin_ns` is CLOCK_MONOTONIC_RAW at the start of the program.
std::vector<std::pair<std::string, std::string>> window_variables(const WindowOptions& options, std::int64_t begin_ns);
// All that could be among them, so that those of an outer recording can be taken away.
const std::vector<std::string>& window_variable_names();

// "30 s from 10 s after the start on"; "" for everything.
std::string describe(const WindowOptions& options);

// "500ms", "10s", "1.5m", "1h" -> ns.
Result<std::int64_t> parse_duration(std::string_view text);
// "0s", "250us", "1.5s" -> ns: a place in a run.
Result<std::int64_t> parse_moment(std::string_view text);
// "10:20", "10:", ":20".
Result<StepSpan> parse_steps(std::string_view text);

}  // namespace llmprof::record
