#pragma once
// The measurements of `llmprof bench --for` as operator tables. A point belongs to the part that it is named after;
// what several operators do for one part (a norm and the sum before it) adds up; writing keys and values to the cache
// is part of the attention, as it is where engines' tables come from.
//
// Attention of prompts and decodes together: the operator runs one after the other, so its time is looked up as the sum
// of both, which have many more points. The measured sums are held against it, and a note says how well it holds.
// A chunk with tokens before it may have been computed by another kernel than one without (cuDNN does not know it): its
// time is then scaled by what the two kernels take for the chunk alone, and a note says so.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "predict/tables/step_cost.h"
#include "predict/tables/tables.h"
#include "trace/run.h"

namespace llmprof::predict {

// Which time of a call.
enum class TimesOf : std::uint8_t {
  kKernels,  // of its kernels alone: launched one by one, what is between them comes on top
  kInGraph,  // per call inside a replayed CUDA graph, gaps included; of the kernels where that was not measured
};

struct MeasuredRow {
  std::string op;          // part: "qkv_proj", "attention"
  std::vector<double> at;  // by the axes of its table
  double kernels_ns = 0;
  std::optional<double> graph_ns;
  double ns(TimesOf times) const { return times == TimesOf::kInGraph ? graph_ns.value_or(kernels_ns) : kernels_ns; }
};

struct MeasuredTables {
  std::vector<MeasuredRow> rows;  // in the order of the run
  LaunchCosts launch;             // source "": not measured
  std::vector<std::string> notes;
  std::int64_t skipped = 0;  // points that could not be measured
  std::string device, driver, model, llmprof_version, run, dtype;
  std::optional<double> clock_mhz;  // median over the points
  std::int64_t tensor = 1;
};

// What `bench --for` was asked for, from its command line: --for, --tp, --dtype. nullopt: it was another benchmark.
struct ForCommand {
  std::string model, dtype;
  std::int64_t tensor = 1;
};
std::optional<ForCommand> for_command(const std::vector<std::string>& command);

// An error where the run is none of `bench --for`, or nothing was measured.
Result<MeasuredTables> measured_tables(const trace::Run& run);
Result<OperatorTables> to_tables(const MeasuredTables& measured, TimesOf times = TimesOf::kKernels);
// Both together.
Result<OperatorTables> tables_from_run(const trace::Run& run, TimesOf times = TimesOf::kKernels);

}  // namespace llmprof::predict
