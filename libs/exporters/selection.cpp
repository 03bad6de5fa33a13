#include "exporters/selection.h"

#include <fmt/format.h>

#include "trace/schema.h"

namespace llmprof::exporters {
namespace {

std::string literal(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

// Conditions that a row of alias `t` lies in the window; "true" when all of it is wanted.
std::string in_window(const Selection& selection, std::string_view begin, std::string_view end) {
  std::string sql = "true";
  if (selection.begin_ns) sql += fmt::format(" AND coalesce({}, {}) >= {}", end, begin, *selection.begin_ns);
  if (selection.end_ns) sql += fmt::format(" AND {} <= {}", begin, *selection.end_ns);
  return sql;
}

std::string of_stage(const Selection& selection, std::string_view stage) {
  return selection.stage.empty() ? "" : fmt::format(" AND {} = {}", stage, literal(selection.stage));
}

// Rows that know no stage belong to it while one of its steps runs.
std::string during_stage(const Selection& selection, std::string_view begin, std::string_view end) {
  if (selection.stage.empty()) return "";
  return fmt::format(
      " AND EXISTS (SELECT 1 FROM step AS s WHERE s.stage = {} AND {} <= s.end_ns AND coalesce({}, {}) >= s.begin_ns)",
      literal(selection.stage), begin, end, begin);
}

std::string timed_rows(std::string_view table, const Selection& of, std::string_view begin, std::string_view end) {
  return fmt::format("SELECT t.* FROM {} AS t WHERE {}{}", table, in_window(of, begin, end),
                     during_stage(of, begin, end));
}

}  // namespace

// Estimated kernels have no id. The conditions are plain equalities, because anything else makes the engine compare
// every kernel with every launch.
std::string selected_kernels(const Selection& selection) {
  return fmt::format(
      "SELECT t.*, coalesce(a.stage, l.stage) AS stage, coalesce(a.module, n.module) AS module, coalesce(a.op, n.op) "
      "AS "
      "op, coalesce(a.step_id, l.step_id) AS step_id, coalesce(a.range_id, n.range_id, l.range_id) AS range_id "
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

std::string selected_copies(const Selection& selection) {
  return timed_rows("copy", selection, "t.begin_ns", "t.end_ns");
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

std::string selected_ops(const Selection& selection) { return timed_rows("op", selection, "t.begin_ns", "t.end_ns"); }

std::string selected_apis(const Selection& selection) { return timed_rows("api", selection, "t.begin_ns", "t.end_ns"); }

std::string selected_samples(const Selection& selection) {
  return fmt::format(
      "SELECT t.*, p.stage FROM sample AS t LEFT JOIN sample_place AS p ON p.sample_id = t.id WHERE {}{}",
      in_window(selection, "t.ts_ns", "t.ts_ns"), of_stage(selection, "p.stage"));
}

std::string selected_telemetry(const Selection& selection) {
  return timed_rows("telemetry", selection, "t.ts_ns", "t.ts_ns");
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
                       literal(selection.stage));
  }
  return fmt::format("{} WHERE {}{}", all, window, during_stage(selection, begin, end));
}

}  // namespace llmprof::exporters
