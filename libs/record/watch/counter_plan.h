#pragma once
// What is to be counted, and how: checked, in words, and as the file counters.plan that tells the collectors
// (libs/collect/cuda/counters/plan.h).

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trace/run_info.h"

namespace llmprof::record {

enum class CounterMethod : std::uint8_t { kAutomatic, kRange, kSampled, kKernel };
enum class StallMode : std::uint8_t { kOff, kWith, kOnly };

struct NamedKernel {
  std::string name;                   // as the user knows it
  std::vector<std::string> patterns;  // of mangled names: the ways in which it may be spelled
};

struct CounterOptions {
  std::string set;  // "light", "memory,tensor_active_pct", a metric of the chip; "": nothing is counted
  CounterMethod method = CounterMethod::kAutomatic;
  std::chrono::nanoseconds period{std::chrono::milliseconds(1)};  // of samples
  double budget = 0.015;                                          // of the program's time; 0: no limit
  std::vector<std::string> ranges;  // patterns of what is measured: what names a step or a stage, or the user's
  bool own_ranges = false;          // they are the user's
  std::vector<NamedKernel> kernels;
  bool replay = false;
  StallMode stalls = StallMode::kOff;
  bool any() const { return !set.empty() || stalls != StallMode::kOff; }
};

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

// Kernels by the names that people read, for a collector that knows them by their mangled names only.
//
// Patterns (`*`, `?`) of mangled names that a name like the table kernel's stands for, or, with `wildcards`, a pattern
// of such names: "gemm<4, Tile>" is "_Z4gemmI*4Tile*". They match every kernel of that name, and may match a few more:
// what mangling abbreviates or writes otherwise (types that were named before, numbers, lambdas) is left open.
std::vector<std::string> mangled_patterns(std::string_view name, bool wildcards);

// At commas that stand outside of brackets: "a<1, 2>,b" is "a<1, 2>" and "b".
std::vector<std::string> split_names(std::string_view text);

}  // namespace llmprof::record
