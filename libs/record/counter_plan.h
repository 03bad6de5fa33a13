#pragma once
// What is to be counted, and how: checked, in words, and as the file counters.plan that tells the collectors
// (libs/collect/cuda/counters/plan.h).

#include <optional>
#include <string>

#include "base/result.h"
#include "record/counter_options.h"
#include "trace/run_info.h"

namespace llmprof::record {

// The method that is used: kernels were named: kernel; else range.
CounterMethod method_of(const CounterOptions& options);
std::string_view name_of(CounterMethod method);  // "range", "sampled", "kernel"

// Time that measuring may take of the program's where nobody says: more for what needs several passes.
double default_budget(const std::string& set);

// kUsage if they contradict each other, or ask for what does not exist.
Result<void> check(const CounterOptions& options);

// "set light, range method: one window per step or stage, at most 1.5 % of the program's time"; "" for nothing.
std::string describe(const CounterOptions& options);
// As run.json says it; none: nothing was asked for.
std::optional<trace::AskedCounters> asked(const CounterOptions& options);

// Whether the collectors have something to count; samples are the recorder's.
bool needs_plan(const CounterOptions& options);
Result<std::string> plan_text(const CounterOptions& options);
Result<void> write_counter_plan(const std::string& capture_folder, const CounterOptions& options);

}  // namespace llmprof::record
