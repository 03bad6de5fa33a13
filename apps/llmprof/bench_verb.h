#pragma once
// What `llmprof bench` was asked for, from its options, and how it shows what came of it.

#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/sweep/sweep.h"
#include "report/bench.h"
#include "verb.h"

namespace llmprof::app {

// A flag for every axis of every operator: "--kv-heads" for kv_heads.
std::span<const Option> axis_options();
std::string axis_flag(std::string_view axis);
Result<std::vector<bench::Type>> types_in(const Arguments& arguments);  // --dtype; empty if it is not given

// Limits, checks, threads and seed; cache and implementation are those of the points.
Result<bench::BenchOptions> bench_options(const Arguments& arguments);

struct BenchPlan {
  std::vector<bench::Point> points;
  std::vector<std::string> notes;  // what was left out
};
// The points that the operators and axes, --like or --from ask for.
Result<BenchPlan> bench_plan(const Arguments& arguments);

// Of --for: what the predictions of a model need, and the options under which it takes no longer than --budget.
Result<BenchPlan> plan_for(const Arguments& arguments);
Result<bench::BenchOptions> for_options(const Arguments& arguments, bench::BenchOptions options, std::size_t points);
// After a run of --for, also a resumed one: keeps its tables where predictions look for them, and shows what there is.
// `print`: the text on standard output, too. nullopt: it was another benchmark.
Result<bool> keep_and_show_tables(const std::string& run_folder, bool print);

// Prints the table or JSON of a run of benchmarks, and writes --csv and --plot.
Result<void> show_bench(const Arguments& arguments, const std::string& run_folder);
Result<int> compare_runs(const Arguments& arguments);    // --compare A B
Result<int> list_operators(const Arguments& arguments);  // --list

}  // namespace llmprof::app
