#pragma once
// The selected part of a run as SQL. Every exporter reads through these, so that --window and --stage mean one thing.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "exporters/exporter.h"
#include "trace/run.h"

namespace llmprof::exporters {

// SELECTs (to be put in parentheses) with these columns beside those of their table:
std::string selected_kernels(const Selection& selection);  // kernel_all + stage, module, op, step_id, range_id
// counted_kernel + stage; a launch without times belongs to a stage while one of its steps runs
std::string selected_counted_kernels(const Selection& selection);
std::string selected_graph_launches(const Selection& selection);  // graph_launch + stage, step_id
std::string selected_ranges(const Selection& selection);          // range + stage, module
std::string selected_steps(const Selection& selection);
std::string selected_samples(const Selection& selection);  // sample + stage
std::string selected_work(const Selection& selection);     // the view work: by stage; sums know no window
// Rows of any table; tables without a time are given whole.
std::string selected_rows(std::string_view table, const Selection& selection);

// What happened in the selected part of a run, as SQL: rows of one shape for host threads and one for devices. Viewers
// of time lines read through these.

enum class HostKind : std::uint8_t { kRange, kMark, kOp, kApi, kLaunch };
// thread_id, begin_ns, end_ns, name, kind (HostKind), flow (of kLaunch: what it launches).
std::string host_slices(const Selection& selection);

enum class DeviceKind : std::uint8_t { kGraph, kKernel, kCopy };
enum class Detail : std::uint8_t { kPlain, kFull };
// device_id, stream, thread_id, begin_ns, end_ns, name, kind (DeviceKind), flow (NULL if its launch is not known),
// estimated. With kFull also stage, module, op, grid, block ("1,2,3"), registers, shared_bytes, m, n, k, batch,
// confidence_percent, bytes, graph.
std::string device_slices(const Selection& selection, Detail detail);

// Numbers that a launch and what it launched share: unique over kernels, copies and graph launches.
inline constexpr const char* kFlowOfKernel = "id * 4 + 1";
inline constexpr const char* kFlowOfCopy = "id * 4 + 2";
inline constexpr const char* kFlowOfGraph = "id * 4 + 3";

// Kernels, measured and estimated, without joins unless they are needed.
std::string kernels_of(const Selection& selection, Detail detail);

// What a file of slices will take: bytes per slice of a device and of a host thread.
Result<double> estimated_bytes(const trace::Run& run, const Selection& selection, double per_device, double per_host);

// Times that cut a large result into parts that fit memory and can be sorted there.

struct Window {
  std::int64_t begin_ns, end_ns;  // end_ns is not in it
};

// Rows of a table, a view or a SELECT in parentheses.
Result<std::int64_t> count_rows(const trace::Run& run, std::string_view what);
// What a format of slices and events says where the run has stack samples.
Result<void> note_samples(const trace::Run& run, std::vector<std::string>& notes);

// Windows that hold every row of `sql` (a SELECT with begin_ns) and at most about `rows` each, in order of time. More
// than that only where more than that begin in a thousandth of the whole.
Result<std::vector<Window>> windows_of(const trace::Run& run, const std::string& sql, std::int64_t rows);

}  // namespace llmprof::exporters
