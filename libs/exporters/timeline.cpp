#include "exporters/timeline.h"

#include <fmt/format.h>

#include "exporters/selection.h"

namespace llmprof::exporters {
namespace {

// A call that launched something, of the rows of `source`.
std::string launches(const std::string& source, const char* name, const char* flow, const char* where) {
  return fmt::format(
      " UNION ALL SELECT thread_id, launch_begin_ns, coalesce(launch_end_ns, launch_begin_ns), '{}', {}, {} FROM ({}) "
      "WHERE launch_begin_ns IS NOT NULL{}",
      name, static_cast<int>(HostKind::kLaunch), flow, source, where);
}

}  // namespace

std::string kernels_of(const Selection& selection, Detail detail) {
  if (detail == Detail::kFull || !selection.stage.empty()) return selected_kernels(selection);
  std::string sql = "SELECT * FROM kernel_all WHERE true";
  if (selection.begin_ns) sql += fmt::format(" AND end_ns >= {}", *selection.begin_ns);
  if (selection.end_ns) sql += fmt::format(" AND begin_ns <= {}", *selection.end_ns);
  return sql;
}

std::string host_slices(const Selection& selection) {
  const auto calls = [](const std::string& source, HostKind kind) {
    return fmt::format(" UNION ALL SELECT thread_id, begin_ns, end_ns, name, {}, NULL FROM ({})",
                       static_cast<int>(kind), source);
  };
  return fmt::format(
             "SELECT thread_id, begin_ns, end_ns, name, CASE WHEN kind = 'mark' THEN {} ELSE {} END AS kind, "
             "CAST(NULL AS BIGINT) AS flow FROM ({})",
             static_cast<int>(HostKind::kMark), static_cast<int>(HostKind::kRange),
             selection.stage.empty() ? selected_rows("range", selection) : selected_ranges(selection)) +
         calls(selected_ops(selection), HostKind::kOp) + calls(selected_apis(selection), HostKind::kApi) +
         launches(selected_rows("kernel", selection), "launch kernel", kFlowOfKernel, " AND graph_launch_id IS NULL") +
         launches(selected_copies(selection), "launch copy", kFlowOfCopy, " AND graph_launch_id IS NULL") +
         launches(selected_graph_launches(selection), "launch graph", kFlowOfGraph, "");
}

std::string device_slices(const Selection& selection, Detail detail) {
  const bool full = detail == Detail::kFull;
  const char* flow_of_kernel = "CASE WHEN launch_begin_ns IS NOT NULL AND graph_launch_id IS NULL THEN id * 4 + 1 END";
  const std::string common = "device_id, stream, thread_id, begin_ns, end_ns";
  std::string sql = fmt::format(
      "SELECT t.device_id, t.stream, t.thread_id, t.begin_ns, t.end_ns, t.name, {} AS kind, {} AS flow, "
      "t.source = 'estimated' AS estimated",
      static_cast<int>(DeviceKind::kKernel), flow_of_kernel);
  if (full) {
    sql +=
        ", t.stage, t.module, t.op, concat_ws(',', grid_x, grid_y, grid_z) AS grid, concat_ws(',', block_x, block_y, "
        "block_z) AS block, t.registers, t.shared_bytes, g.m, g.n, g.k, g.batch, CAST(round(t.confidence * 100) AS "
        "BIGINT) AS confidence_percent, CAST(NULL AS BIGINT) AS bytes, CAST(NULL AS BIGINT) AS graph";
  }
  sql += fmt::format(
      " FROM ({}) AS t{}", kernels_of(selection, detail),
      full ? " LEFT JOIN (SELECT id AS product, m, n, k, batch FROM gemm) AS g ON g.product = t.gemm_id" : "");
  const auto others = [&](const std::string& source, const char* name, DeviceKind kind, const std::string& flow,
                          const char* more) {
    return fmt::format(
        " UNION ALL BY NAME SELECT {}, {} AS name, {} AS kind, {} AS flow, false AS estimated{} FROM ({})", common,
        name, static_cast<int>(kind), flow, full ? more : "", source);
  };
  return sql +
         others(selected_copies(selection), "CASE WHEN direction = 'fill' THEN 'fill' ELSE 'copy ' || direction END",
                DeviceKind::kCopy,
                "CASE WHEN launch_begin_ns IS NOT NULL AND graph_launch_id IS NULL THEN id * 4 + 2 END", ", bytes") +
         others(selected_graph_launches(selection), "'graph'", DeviceKind::kGraph,
                "CASE WHEN launch_begin_ns IS NOT NULL THEN id * 4 + 3 END", ", stage, graph");
}

}  // namespace llmprof::exporters
