#include "exporters/selection.h"

#include <fmt/format.h>

#include "trace/schema.h"

namespace llmprof::exporters {
namespace {

// Conditions that a row of alias `t` lies in the window; "true" when all of it is wanted.
std::string in_window(const Selection& selection, std::string_view begin, std::string_view end) {
  std::string sql = "true";
  if (selection.begin_ns) sql += fmt::format(" AND coalesce({}, {}) >= {}", end, begin, *selection.begin_ns);
  if (selection.end_ns) sql += fmt::format(" AND {} <= {}", begin, *selection.end_ns);
  return sql;
}

std::string of_stage(const Selection& selection, std::string_view stage) {
  return selection.stage.empty() ? "" : fmt::format(" AND {} = {}", stage, trace::sql_literal(selection.stage));
}

// Rows that know no stage belong to it while one of its steps runs.
std::string during_stage(const Selection& selection, std::string_view begin, std::string_view end) {
  if (selection.stage.empty()) return "";
  return fmt::format(
      " AND EXISTS (SELECT 1 FROM step AS s WHERE s.stage = {} AND {} <= s.end_ns AND coalesce({}, {}) >= s.begin_ns)",
      trace::sql_literal(selection.stage), begin, end, begin);
}

// A call that launched something, of the rows of `source`.
std::string launches(const std::string& source, const char* name, const char* flow, const char* where) {
  return fmt::format(
      " UNION ALL SELECT thread_id, launch_begin_ns, coalesce(launch_end_ns, launch_begin_ns), '{}', {}, {} FROM ({}) "
      "WHERE launch_begin_ns IS NOT NULL{}",
      name, static_cast<int>(HostKind::kLaunch), flow, source, where);
}

}  // namespace

// Estimated kernels have no id. The conditions are plain equalities, because anything else makes the engine compare
// every kernel with every launch.
std::string selected_kernels(const Selection& selection) {
  return fmt::format(
      "SELECT t.*, coalesce(a.stage, l.stage) AS stage, coalesce(a.module, n.module) AS module, coalesce(a.op, n.op) "
      "AS op, coalesce(a.step_id, l.step_id) AS step_id, coalesce(a.range_id, n.range_id, l.range_id) AS range_id "
      "FROM kernel_all AS t LEFT JOIN attribution AS a ON a.kernel_id = t.id "
      "LEFT JOIN launch_place AS l ON l.graph_launch_id = CASE WHEN t.id IS NULL THEN t.graph_launch_id END "
      "LEFT JOIN node_place AS n ON n.graph_node_id = CASE WHEN t.id IS NULL THEN t.graph_node_id END WHERE {}{}",
      in_window(selection, "t.begin_ns", "t.end_ns"), of_stage(selection, "coalesce(a.stage, l.stage)"));
}

std::string selected_counted_kernels(const Selection& selection) {
  return fmt::format(
      "SELECT t.*, k.stage FROM counted_kernel AS t JOIN ({}) AS k ON k.id = t.kernel_id UNION ALL "
      "SELECT t.*, NULL AS stage FROM counted_kernel AS t WHERE t.kernel_id IS NULL AND {}{}",
      selected_kernels(selection), in_window(selection, "t.begin_ns", "t.begin_ns"),
      during_stage(selection, "t.begin_ns", "t.begin_ns"));
}

std::string selected_graph_launches(const Selection& selection) {
  return fmt::format(
      "SELECT t.*, l.stage, l.step_id FROM graph_launch AS t LEFT JOIN launch_place AS l ON l.graph_launch_id = t.id "
      "WHERE {}{}",
      in_window(selection, "t.begin_ns", "t.end_ns"), of_stage(selection, "l.stage"));
}

std::string selected_ranges(const Selection& selection) {
  return fmt::format(
      "SELECT t.*, p.stage, p.module FROM \"range\" AS t LEFT JOIN range_time AS p ON p.range_id = t.id WHERE {}{}",
      in_window(selection, "t.begin_ns", "t.end_ns"), of_stage(selection, "p.stage"));
}

std::string selected_steps(const Selection& selection) {
  return fmt::format("SELECT t.* FROM step AS t WHERE {}{}", in_window(selection, "t.begin_ns", "t.end_ns"),
                     of_stage(selection, "t.stage"));
}

std::string selected_samples(const Selection& selection) {
  return fmt::format(
      "SELECT t.*, p.stage FROM sample AS t LEFT JOIN sample_place AS p ON p.sample_id = t.id WHERE {}{}",
      in_window(selection, "t.ts_ns", "t.ts_ns"), of_stage(selection, "p.stage"));
}

std::string selected_work(const Selection& selection) {
  return "SELECT t.* FROM work AS t WHERE true" + of_stage(selection, "t.stage");
}

std::string selected_rows(std::string_view table, const Selection& selection) {
  const trace::Table* known = trace::find_table(table);
  const bool spans = known != nullptr && known->find("begin_ns") != nullptr && known->find("end_ns") != nullptr;
  const bool moments = known != nullptr && known->find("ts_ns") != nullptr;
  const bool lasting = table == "process" || table == "thread";  // what everything else refers to
  const std::string all = fmt::format("SELECT t.* FROM \"{}\" AS t", table);
  if (lasting || (!spans && !moments)) return all;
  const std::string_view begin = spans ? "t.begin_ns" : "t.ts_ns", end = spans ? "t.end_ns" : "t.ts_ns";
  const std::string window = in_window(selection, begin, end);
  if (selection.stage.empty()) return fmt::format("{} WHERE {}", all, window);
  if (known->find("stage") != nullptr) return fmt::format("{} WHERE {}{}", all, window, of_stage(selection, "t.stage"));
  if (table == "kernel") {
    return fmt::format("{} WHERE {} AND t.id IN (SELECT kernel_id FROM attribution WHERE stage = {})", all, window,
                       trace::sql_literal(selection.stage));
  }
  return fmt::format("{} WHERE {}{}", all, window, during_stage(selection, begin, end));
}

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
         calls(selected_rows("op", selection), HostKind::kOp) + calls(selected_rows("api", selection), HostKind::kApi) +
         launches(selected_rows("kernel", selection), "launch kernel", kFlowOfKernel, " AND graph_launch_id IS NULL") +
         launches(selected_rows("copy", selection), "launch copy", kFlowOfCopy, " AND graph_launch_id IS NULL") +
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
         others(selected_rows("copy", selection),
                "CASE WHEN direction = 'fill' THEN 'fill' ELSE 'copy ' || direction END", DeviceKind::kCopy,
                "CASE WHEN launch_begin_ns IS NOT NULL AND graph_launch_id IS NULL THEN id * 4 + 2 END", ", bytes") +
         others(selected_graph_launches(selection), "'graph'", DeviceKind::kGraph,
                "CASE WHEN launch_begin_ns IS NOT NULL THEN id * 4 + 3 END", ", stage, graph");
}

Result<double> estimated_bytes(const trace::Run& run, const Selection& selection, double per_device, double per_host) {
  LLMPROF_LET(const std::int64_t device,
              count_rows(run, fmt::format("({})", device_slices(selection, Detail::kPlain))));
  LLMPROF_LET(const std::int64_t host, count_rows(run, fmt::format("({})", host_slices(selection))));
  return static_cast<double>(device) * per_device + static_cast<double>(host) * per_host;
}

Result<std::vector<Window>> windows_of(const trace::Run& run, const std::string& sql, std::int64_t rows) {
  LLMPROF_LET(const trace::ResultTable ends,
              run.query(fmt::format("SELECT min(begin_ns), max(begin_ns), count(*) FROM ({})", sql)));
  const std::int64_t first = ends.rows[0][0].as_int(), last = ends.rows[0][1].as_int();
  const std::int64_t count = ends.rows[0][2].as_int();
  if (count == 0) return std::vector<Window>{};
  if (count <= rows) return std::vector<Window>{{first, last + 1}};
  constexpr std::int64_t kBuckets = 4096;
  const std::int64_t width = (last - first) / kBuckets + 1;
  LLMPROF_LET(const trace::ResultTable buckets,
              run.query(fmt::format("SELECT (begin_ns - {}) // {} AS bucket, count(*) FROM ({}) GROUP BY 1 ORDER BY 1",
                                    first, width, sql)));
  std::vector<Window> windows;
  std::int64_t held = rows;  // so that the first bucket opens a window
  for (const auto& row : buckets.rows) {
    const std::int64_t begin = first + row[0].as_int() * width;
    if (held + row[1].as_int() > rows) {
      windows.push_back({begin, begin + width});
      held = 0;
    }
    windows.back().end_ns = begin + width;
    held += row[1].as_int();
  }
  return windows;
}

Result<std::int64_t> count_rows(const trace::Run& run, std::string_view what) {
  LLMPROF_LET(const trace::ResultTable found, run.query(fmt::format("SELECT count(*) FROM {}", what)));
  return found.rows[0][0].as_int();
}

Result<void> note_samples(const trace::Run& run, std::vector<std::string>& notes) {
  LLMPROF_LET(const std::int64_t samples, count_rows(run, "sample"));
  if (samples > 0) notes.emplace_back("without stack samples; speedscope, pprof and folded have them");
  return {};
}

}  // namespace llmprof::exporters
