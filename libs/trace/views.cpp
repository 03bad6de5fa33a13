#include "trace/views.h"

#include <fmt/format.h>

namespace llmprof::trace {
namespace {

std::string column_list(const Table& table, const std::set<std::string, std::less<>>* present) {
  std::string list;
  for (const Column& column : table.columns) {
    if (!list.empty()) list += ", ";
    list += present != nullptr && present->contains(column.name)
                ? sql_identifier(column.name)
                : fmt::format("CAST(NULL AS {}) AS {}", sql_type(column), sql_identifier(column.name));
  }
  return list;
}

std::string view_of(const Table& table, const std::vector<OpenFile>& files, const ColumnsOfTables& columns) {
  std::string paths;
  for (const OpenFile& file : files) {
    if (file.listed.table == table.name) paths += (paths.empty() ? "" : ", ") + sql_literal(file.path);
  }
  const auto present = columns.find(table.name);
  const std::string list = column_list(table, present != columns.end() ? &present->second : nullptr);
  return fmt::format(
      "CREATE OR REPLACE VIEW {} AS SELECT {} {}", sql_identifier(table.name), list,
      paths.empty() ? "WHERE false" : fmt::format("FROM read_parquet([{}], hive_partitioning = false)", paths));
}

// Launches that were not recorded node by node, expanded with the shares of their nodes: only as far as a query asks.
constexpr const char* kKernelAll = R"(
CREATE OR REPLACE VIEW kernel_all AS
SELECT *, CASE WHEN estimated THEN 'estimated' ELSE 'measured' END AS source, CAST(1 AS DOUBLE) AS confidence FROM kernel
UNION ALL BY NAME
SELECT l.begin_ns + CAST(round(s.begin_share * (l.end_ns - l.begin_ns)) AS BIGINT) AS begin_ns,
       l.begin_ns + CAST(round(s.end_share * (l.end_ns - l.begin_ns)) AS BIGINT) AS end_ns,
       n.name, l.device_id, l.stream, l.thread_id, l.launch_begin_ns, l.launch_end_ns, n.gemm_id, n.stack_id,
       l.id AS graph_launch_id, n.id AS graph_node_id, 'estimated' AS source, s.confidence
FROM graph_launch AS l
JOIN graph_node AS n ON n.graph = l.graph
JOIN node_share AS s ON s.graph_node_id = n.id
WHERE NOT coalesce(l.nodes_recorded, false) AND (n.kind IS NULL OR n.kind = 'kernel'))";

// Work of devices for sums: a row per kernel, but of launches that were not recorded node by node one per
// stage and node, which does not grow with the launches. A graph of which no launch was recorded so is one row per
// stage. work_sum has the same sums in few rows: measured kernels that are alike are one.
constexpr const char* kWork = R"(
CREATE OR REPLACE VIEW {} AS
WITH launched AS (
  SELECT p.stage, p.step_id IS NOT NULL AS in_step, l.graph, l.device_id, count(*) AS launches,
         CAST(sum(l.end_ns - l.begin_ns) AS BIGINT) AS ns
  FROM graph_launch AS l LEFT JOIN launch_place AS p ON p.graph_launch_id = l.id
  WHERE NOT coalesce(l.nodes_recorded, false)
  GROUP BY ALL),
shared AS (
  SELECT n.graph, n.id, n.name, n.stack_id, s.end_share - s.begin_share AS share, p.module, p.op, p.module_source,
         p.gemm_id, p.gemm_call
  FROM node_share AS s
  JOIN graph_node AS n ON n.id = s.graph_node_id
  LEFT JOIN node_place AS p ON p.graph_node_id = n.id
  WHERE n.kind IS NULL OR n.kind = 'kernel')
{}
UNION ALL
SELECT l.stage, l.in_step, s.module, s.op, s.module_source, s.name, l.device_id, s.gemm_id, s.id, s.stack_id, l.launches,
       CASE WHEN s.gemm_call THEN l.launches ELSE 0 END, CAST(round(l.ns * s.share) AS BIGINT), 'estimated', true
FROM launched AS l JOIN shared AS s ON s.graph = l.graph
UNION ALL
SELECT l.stage, l.in_step, NULL, NULL, NULL, 'nodes of an unknown graph', l.device_id, NULL, NULL, NULL, l.launches, 0, l.ns,
       'measured', false
FROM launched AS l
WHERE l.graph NOT IN (SELECT graph FROM shared))";
constexpr const char* kMeasured = R"(
SELECT a.stage, coalesce(a.step_id IS NOT NULL, false) AS in_step, a.module, a.op, a.module_source, k.name, k.device_id,
       a.gemm_id, k.graph_node_id, k.stack_id, CAST(1 AS BIGINT) AS executions,
       CAST(coalesce(a.gemm_call, false) AS BIGINT) AS gemm_calls, k.end_ns - k.begin_ns AS time_ns,
       CASE WHEN k.estimated THEN 'estimated' ELSE 'measured' END AS source,
       true AS known
FROM kernel AS k LEFT JOIN attribution AS a ON a.kernel_id = k.id)";
constexpr const char* kMeasuredSums = R"(
SELECT stage, in_step, module, op, module_source, name, device_id, gemm_id, graph_node_id, stack_id,
       kernels AS executions, gemm_calls, time_ns, CASE WHEN estimated THEN 'estimated' ELSE 'measured' END AS source,
       true AS known
FROM kernel_sum)";

// A grouped cuBLAS call is a row of gemm for each group; its kernels, which compute all of them, belong to one of the
// rows. Since and until: which part of the call's time is the group's if time is shared by FLOPs. Parts add up to 1.
constexpr const char* kGemmGroup = R"(
CREATE OR REPLACE VIEW gemm_group AS
WITH grouped AS (
  SELECT id, thread_id, library, function, begin_ns, end_ns, 2.0 * m * n * k * batch AS flops
  FROM gemm
  WHERE contains(function, 'Grouped'))
SELECT id AS gemm_id, min(id) OVER whole AS call_id, sum(flops) OVER whole AS call_flops,
       CASE WHEN sum(flops) OVER whole > 0 THEN coalesce(sum(flops) OVER before, 0) / sum(flops) OVER whole
            ELSE count(*) OVER before / count(*) OVER whole END AS since,
       CASE WHEN sum(flops) OVER whole > 0 THEN (coalesce(sum(flops) OVER before, 0) + flops) / sum(flops) OVER whole
            ELSE (count(*) OVER before + 1) / count(*) OVER whole END AS until
FROM grouped
WINDOW whole AS (PARTITION BY thread_id, library, function, begin_ns, end_ns),
       before AS (PARTITION BY thread_id, library, function, begin_ns, end_ns ORDER BY id
                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
QUALIFY count(*) OVER whole > 1)";

// work_sum of matrix products, where each group of a call has its row. Shared: its time is a part of the call's.
constexpr const char* kWorkProduct = R"(
CREATE OR REPLACE VIEW work_product AS
WITH part AS MATERIALIZED (SELECT * FROM gemm_group)
SELECT w.stage, w.in_step, w.module, w.op, w.name, w.gemm_id, w.executions, w.gemm_calls, w.time_ns, w.source,
       false AS shared
FROM work_sum AS w
WHERE w.gemm_id IS NOT NULL AND w.gemm_id NOT IN (SELECT gemm_id FROM part)
UNION ALL
SELECT w.stage, w.in_step, w.module, w.op, w.name, p.gemm_id, w.executions, w.gemm_calls,
       CAST(round(w.time_ns * p.until) - round(w.time_ns * p.since) AS BIGINT), w.source, true
FROM work_sum AS w JOIN part AS named ON named.gemm_id = w.gemm_id JOIN part AS p ON p.call_id = named.call_id)";

// Launches of kernels that counters were read of, by the id that the counters name. CUPTI gives no times of a kernel
// that it executes again (record --replay): such a one has no row in kernel, and its time is what the counter of time
// says, if that was read.
constexpr const char* kCountedKernel = R"(
CREATE OR REPLACE VIEW counted_kernel AS
WITH counted AS (SELECT DISTINCT scope_id FROM counter WHERE scope = 'kernel')
SELECT id, id AS kernel_id, name, device_id, begin_ns, end_ns - begin_ns AS time_ns, 'record' AS time_source
FROM kernel
WHERE id IN (SELECT scope_id FROM counted)
UNION ALL
SELECT w.id, NULL, w.name, w.device_id, w.begin_ns, CAST(round(c.value) AS BIGINT), CASE WHEN c.value > 0 THEN 'counter' END
FROM counter_window AS w LEFT JOIN counter AS c
  ON c.scope_id = w.id AND c.scope = 'kernel' AND c.metric = 'gpu__time_duration.sum' AND c.value > 0
WHERE w.scope = 'kernel' AND w.kernel_id IS NULL AND w.id IN (SELECT scope_id FROM counted))";

// From exec to exit, as far as it was seen. Older recorders let a process begin with its first event and end with its
// exit handlers; what it used was read before and after all the same. What the collector in it noted tells when it was
// loaded and when the handlers ran.
constexpr const char* kProcessLife = R"(
CREATE OR REPLACE VIEW process_life AS
WITH reading AS (SELECT process_id, min(ts_ns) AS first_ns, max(ts_ns) AS last_ns FROM process_usage GROUP BY 1),
loaded AS (SELECT process_id, min(ts_ns) AS ns FROM clock_sync WHERE process_id IS NOT NULL GROUP BY 1),
handlers AS (SELECT process_id, max(ts_ns) AS ns FROM collector_cost GROUP BY 1)
SELECT p.id AS process_id, p.pid, p.parent_pid, p.executable, p.arguments, least(p.begin_ns, u.first_ns) AS begin_ns,
       CASE WHEN p.end_ns IS NOT NULL THEN greatest(p.end_ns, u.last_ns) END AS end_ns,
       u.first_ns AS first_reading_ns, u.last_ns AS last_reading_ns, l.ns AS collector_begin_ns, h.ns AS collector_end_ns
FROM process AS p LEFT JOIN reading AS u ON u.process_id = p.id LEFT JOIN loaded AS l ON l.process_id = p.id
LEFT JOIN handlers AS h ON h.process_id = p.id)";

// Steps, and which of them times are told by: those in which hardware counters were read (the step that a window lies
// in, or all that begin in it) or the program warms up take longer. They count only where a stage has no others.
constexpr const char* kPacedStep = R"(
CREATE OR REPLACE VIEW paced_step AS
WITH counted AS (
  SELECT s.id
  FROM counter_window AS w ASOF JOIN step AS s ON w.thread_id = s.thread_id AND w.end_ns >= s.begin_ns
  WHERE w.scope <> 'sample' AND w.begin_ns < s.end_ns
  UNION
  SELECT s.id
  FROM counter_window AS w JOIN step AS s ON w.thread_id = s.thread_id AND s.begin_ns >= w.begin_ns AND s.begin_ns < w.end_ns
  WHERE w.scope <> 'sample'),
marked AS (SELECT *, id IN (SELECT id FROM counted) AS counted FROM step)
SELECT *, NOT (counted OR warm_up) OR bool_and(counted OR warm_up) OVER (PARTITION BY stage) AS steady FROM marked)";

}  // namespace

std::vector<std::string> view_statements(const std::vector<OpenFile>& files, const ColumnsOfTables& columns) {
  std::vector<std::string> statements;
  for (const Table* table : tables()) statements.push_back(view_of(*table, files, columns));
  statements.emplace_back(kKernelAll);
  statements.emplace_back(kCountedKernel);
  statements.emplace_back(kProcessLife);
  statements.emplace_back(kPacedStep);
  statements.push_back(fmt::format(kWork, "work", kMeasured));
  statements.push_back(fmt::format(kWork, "work_sum", kMeasuredSums));
  statements.emplace_back(kGemmGroup);
  statements.emplace_back(kWorkProduct);
  return statements;
}

}  // namespace llmprof::trace
