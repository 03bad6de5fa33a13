#pragma once
// A benchmark's run, laid out as terminal text, JSON, CSV and plots; and two of them compared. Computes nothing.

#include <string>
#include <vector>

#include "analyze/bench.h"
#include "base/json_fwd.h"
#include "report/plot.h"
#include "trace/run_info.h"

namespace llmprof::report {

struct BenchPage {
  std::string run;  // the folder as the user named it
  trace::RunInfo info;
  analyze::BenchResults results;
};

struct BenchComparePage {
  std::string a, b;  // the folders
  analyze::BenchComparison comparison;
};

// Lines of at most line_width() columns. A table for each operator, with columns for the sizes that vary; what was not
// measured stands last, with its reason.
std::string to_text(const BenchPage& page, bool colour);
std::string to_text(const BenchComparePage& page, bool colour);

// Adds the payload behind what `out` already holds. docs/format/json-bench.md describes every key.
void to_json(const BenchPage& page, base::Json& out);
void to_json(const BenchComparePage& page, base::Json& out);
base::Json bench_points_json(const std::vector<analyze::BenchPoint>& points);

// A line for each point under a header line; a column for every axis that any point has.
std::string to_csv(const BenchPage& page);

// One plot for each operator and axis with at least two values: time to the right of the axis, a line for each
// combination of the rest.
struct BenchPlot {
  std::string name;  // "gemm-m": part of a file name
  Plot plot;
};
std::vector<BenchPlot> to_plots(const BenchPage& page);

}  // namespace llmprof::report
