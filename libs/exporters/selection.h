#pragma once
// The selected part of a run as SQL. Every exporter reads through these, so that --window and --stage mean one thing.

#include <string>

#include "exporters/exporter.h"

namespace llmprof::exporters {

// SELECTs (to be put in parentheses) with these columns beside those of their table:
std::string selected_kernels(const Selection& selection);  // kernel_all + stage, module, op, step_id, range_id
// counted_kernel + stage; a launch without times belongs to a stage while one of its steps runs
std::string selected_counted_kernels(const Selection& selection);
std::string selected_graph_launches(const Selection& selection);  // graph_launch + stage, step_id
std::string selected_copies(const Selection& selection);
std::string selected_ranges(const Selection& selection);  // range + stage, module
std::string selected_steps(const Selection& selection);
std::string selected_ops(const Selection& selection);
std::string selected_apis(const Selection& selection);
std::string selected_samples(const Selection& selection);  // sample + stage
std::string selected_telemetry(const Selection& selection);
std::string selected_work(const Selection& selection);  // the view work: by stage; sums know no window
// Rows of any table; tables without a time are given whole.
std::string selected_rows(std::string_view table, const Selection& selection);

}  // namespace llmprof::exporters
