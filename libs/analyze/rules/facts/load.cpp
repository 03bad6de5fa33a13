#include "analyze/rules/facts/load.h"

#include <fmt/format.h>

#include "analyze/rows_of.h"

namespace llmprof::analyze {
namespace {

// The longest load step, or what passed before the first step of the process that makes most of them.
constexpr const char* kWindow = R"(
WITH busiest AS (SELECT process_id FROM step WHERE stage <> 'load' GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1),
first AS (
  SELECT s.process_id, s.thread_id, s.begin_ns FROM step AS s JOIN busiest USING (process_id)
  WHERE s.stage <> 'load' ORDER BY s.begin_ns LIMIT 1)
SELECT 1 AS declared, process_id, thread_id, begin_ns, end_ns FROM (
  SELECT * FROM step WHERE stage = 'load' ORDER BY end_ns - begin_ns DESC LIMIT 1)
UNION ALL
SELECT 0, f.process_id, f.thread_id, p.begin_ns, f.begin_ns FROM first AS f JOIN process_life AS p USING (process_id)
ORDER BY 1 DESC LIMIT 1)";

Result<void> fill_usage(const trace::Run& run, LoadFacts& load) {
  const std::string within =
      fmt::format("process_id = {} AND ts_ns BETWEEN {} AND {}", load.process_id, load.begin_ns, load.end_ns);
  LLMPROF_LET(
      const trace::ResultTable table,
      run.query(
          "SELECT CAST(max(user_ns + system_ns) - min(user_ns + system_ns) AS BIGINT) AS cpu_ns, "
          "CAST(max(read_bytes) - min(read_bytes) AS BIGINT) AS read_bytes, "
          "CAST(max(major_faults) - min(major_faults) AS BIGINT) AS major_faults, "
          "CAST(max(involuntary_switches) - min(involuntary_switches) AS BIGINT) AS switches, count(*) AS readings "
          "FROM process_usage WHERE " +
          within));
  const RowView row{table, 0};
  if (row.integer("readings") < 2) return {};
  load.process_cpu_ns = row.maybe_integer("cpu_ns");
  load.read_bytes = row.maybe_integer("read_bytes");
  load.major_faults = row.maybe_integer("major_faults");
  load.involuntary_switches = row.maybe_integer("switches");
  return {};
}

Result<void> fill_samples(const trace::Run& run, LoadFacts& load) {
  // The innermost function that has a name: Python's where there is one, as it tells which line to change.
  LLMPROF_LET(
      const trace::ResultTable table,
      run.query(fmt::format(
          "WITH own AS (SELECT id, stack_id, weight_ns FROM sample WHERE thread_id = {} AND ts_ns BETWEEN {} AND {}), "
          "named AS (SELECT o.id, o.weight_ns, arg_min(f.function, CASE WHEN f.kind = 'python' THEN st.depth ELSE "
          "1000000 + st.depth END) "
          "AS function FROM own AS o LEFT JOIN stack AS st ON st.stack_id = o.stack_id LEFT JOIN frame AS f ON f.id = "
          "st.frame_id "
          "GROUP BY ALL) "
          "SELECT coalesce(function, '') AS function, CAST(sum(weight_ns) AS BIGINT) AS ns, "
          "CAST(sum(sum(weight_ns)) OVER () AS BIGINT) AS all_ns FROM named GROUP BY 1 ORDER BY ns DESC, 1 LIMIT 1",
          load.thread_id, load.begin_ns, load.end_ns)));
  if (table.rows.empty()) return {};
  const RowView row{table, 0};
  load.thread_cpu_ns = row.integer("all_ns");
  load.function = row.text("function");
  if (row.integer("all_ns") > 0) load.function_share = row.real("ns") / row.real("all_ns");
  return {};
}

Result<void> fill_copies(const trace::Run& run, LoadFacts& load) {
  LLMPROF_LET(const trace::ResultTable table,
              run.query(fmt::format(
                  "SELECT count(*) AS copies, coalesce(CAST(sum(bytes) AS BIGINT), 0) AS bytes, "
                  "coalesce(CAST(sum(bytes) FILTER (host_memory = 'pageable') AS BIGINT), 0) AS pageable, "
                  "coalesce(CAST(sum(end_ns - begin_ns) AS BIGINT), 0) AS ns, "
                  "max(bytes * 1e9 / (end_ns - begin_ns)) FILTER (bytes >= 1000000 AND end_ns > begin_ns) AS best "
                  "FROM copy WHERE direction = 'host_to_device' AND begin_ns BETWEEN {} AND {}",
                  load.begin_ns, load.end_ns)));
  const RowView row{table, 0};
  load.copies = row.integer("copies"), load.copied_bytes = row.integer("bytes");
  load.pageable_bytes = row.integer("pageable"), load.copy_ns = row.integer("ns");
  load.best_copy_rate = row.maybe_real("best");
  return {};
}

}  // namespace

Result<LoadFacts> load_facts(const trace::Run& run) {
  LoadFacts load;
  LLMPROF_LET(const trace::ResultTable table, run.query(kWindow));
  if (table.rows.empty()) return load;
  const RowView row{table, 0};
  load.declared = row.integer("declared") != 0;
  load.process_id = row.integer("process_id"), load.thread_id = row.integer("thread_id");
  load.begin_ns = row.integer("begin_ns"), load.end_ns = row.integer("end_ns");
  LLMPROF_TRY(fill_usage(run, load));
  LLMPROF_TRY(fill_samples(run, load));
  LLMPROF_TRY(fill_copies(run, load));
  return load;
}

}  // namespace llmprof::analyze
