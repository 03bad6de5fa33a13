#pragma once
// Recording as `record` and `demo` do it: with progress, messages and the final tally on stderr.

#include "record/record.h"

namespace llmprof::app {

enum class Tally : std::uint8_t { kText, kScreen, kJson, kNone };  // kScreen: a line of text, then the report's screen

struct Recorded {
  int exit_status = 0;  // of the program that was recorded
  std::string folder;
  bool complete = false;  // there is a run to report on
};

Recorded record_and_tell(const record::RecordOptions& options, Tally tally);

// --delay, --duration, --start-range, --steps, --step-range, --last, --control and --profiler-api of `record`.
Result<record::WindowOptions> window_options(const class Arguments& arguments);

// --gpu, --no-gpu, --graphs and --stacks of `record`.
Result<record::CollectorSettings> collector_settings(const class Arguments& arguments);
Result<record::RestOption> rest_option(const class Arguments& arguments);

// --counters and all that goes with it, --stalls and --stalls-only of `record`.
Result<record::CounterOptions> counter_options(const class Arguments& arguments);

// Of a command that was not found: whether a script, or options of `record` behind it, are the reason.
Error with_command_hint(Error error, const std::vector<std::string>& command);

// As the user would type it: relative to the current folder when it lies inside.
std::string short_path(const std::string& path);

}  // namespace llmprof::app
