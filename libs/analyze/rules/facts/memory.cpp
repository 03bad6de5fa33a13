#include <fmt/format.h>

#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "analyze/rules/facts/subjects.h"

namespace llmprof::analyze {

namespace {

// A caching allocator takes what it needs in the first steps: these do not count. Memory of pools is not given back to
// the device, so it is cheap.
constexpr const char* kStages = R"(
WITH later AS (SELECT * FROM step WHERE number > 0 AND stage NOT IN ('load', 'warm-up')),
moments AS (
  SELECT process_id, begin_ns AS at_ns, bytes, 1 AS taken FROM allocation
  WHERE kind IN ('device', 'managed', 'segment') AND device_id IS NOT NULL
  UNION ALL
  SELECT process_id, end_ns, 0, 0 FROM allocation
  WHERE kind IN ('device', 'managed', 'segment') AND device_id IS NOT NULL AND end_ns IS NOT NULL),
placed AS (
  SELECT s.id, s.stage, m.taken, m.bytes
  FROM moments AS m ASOF JOIN later AS s ON m.process_id = s.process_id AND m.at_ns >= s.begin_ns
  WHERE m.at_ns < s.end_ns),
sums AS (
  SELECT stage, count(DISTINCT id) AS steps_allocating, CAST(sum(taken) AS BIGINT) AS allocations,
         CAST(sum(1 - taken) AS BIGINT) AS releases, CAST(sum(bytes) AS BIGINT) AS bytes
  FROM placed GROUP BY stage),
calls AS (
  SELECT s.stage, CAST(sum(a.end_ns - a.begin_ns) AS BIGINT) AS ns
  FROM (SELECT * FROM api WHERE regexp_matches(name, '(cudaMalloc|cuMemAlloc|cudaFree|cuMemFree|hipMalloc|hipFree)')
          AND NOT contains(name, 'Async') AND NOT contains(name, 'Host')) AS a
  ASOF JOIN later AS s ON a.thread_id = s.thread_id AND a.begin_ns >= s.begin_ns
  WHERE a.begin_ns < s.end_ns GROUP BY s.stage)
SELECT l.stage, count(*) AS steps, coalesce(any_value(x.steps_allocating), 0) AS steps_allocating,
  coalesce(any_value(x.allocations), 0) AS allocations, coalesce(any_value(x.releases), 0) AS releases,
  coalesce(any_value(x.bytes), 0) AS bytes, any_value(c.ns) AS calls_ns
FROM later AS l LEFT JOIN sums AS x ON x.stage = l.stage LEFT JOIN calls AS c ON c.stage = l.stage
GROUP BY l.stage ORDER BY min(l.begin_ns))";

}  // namespace

Result<AllocationFacts> allocation_facts(const trace::Run& run) {
  AllocationFacts facts;
  LLMPROF_LET(const trace::ResultTable recorded,
              run.query("SELECT count(*) AS n FROM allocation WHERE kind IN ('device', 'managed', 'segment') AND "
                        "device_id IS NOT NULL"));
  facts.recorded = RowView{recorded, 0}.integer("n");
  if (facts.recorded == 0) return facts;
  LLMPROF_LET(const trace::ResultTable table, run.query(kStages));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    facts.stages.push_back({.stage = row.text("stage"),
                            .steps = row.integer("steps"),
                            .steps_allocating = row.integer("steps_allocating"),
                            .allocations = row.integer("allocations"),
                            .releases = row.integer("releases"),
                            .bytes = row.integer("bytes"),
                            .calls_ns = row.maybe_integer("calls_ns")});
  }
  return facts;
}

Result<HostCopies> host_copies(const trace::Run& run) {
  HostCopies out;
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/stage_copies"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    out.stages.push_back({.stage = row.text("stage"),
                          .direction = row.text("direction"),
                          .host_memory = row.text("host_memory"),
                          .copies = row.integer("copies"),
                          .steps = row.integer("steps"),
                          .bytes = row.integer("bytes"),
                          .largest_bytes = row.integer("largest_bytes"),
                          .time_ns = row.integer("time_ns"),
                          .call_ns = row.integer("call_ns")});
  }
  LLMPROF_LET(const trace::ResultTable rates, ask(run, "sql/pinned_rates"));
  for (std::size_t i = 0; i < rates.rows.size(); ++i) {
    const RowView row{rates, i};
    out.pinned_rate[row.text("direction")] = row.real("bytes_per_s");
  }
  return out;
}

Result<std::vector<NeededBytes>> needed_bytes(const trace::Run& run) {
  std::vector<NeededBytes> out;
  LLMPROF_LET(const trace::ResultTable table, run.query(R"(
WITH counted AS (SELECT DISTINCT scope_id FROM counter WHERE scope = 'kernel'),
product AS (
  SELECT k.id, k.name, g.m, g.n, g.k, g.batch, list_transform([g.type_a, g.type_b, g.type_c], t ->
    CASE WHEN contains(t, '64') THEN 8 WHEN contains(t, '32') THEN 4 WHEN contains(t, '16') THEN 2 WHEN contains(t, '8') THEN 1 END) AS width
  FROM counted AS c JOIN kernel AS k ON k.id = c.scope_id LEFT JOIN gemm_group AS named ON named.gemm_id = k.gemm_id
  LEFT JOIN gemm_group AS p ON p.call_id = named.call_id JOIN gemm AS g ON g.id = coalesce(p.gemm_id, k.gemm_id))
SELECT name, count(DISTINCT id) AS launches, CAST(sum(batch * (m * k * width[1] + k * n * width[2] + m * n * width[3])) AS DOUBLE) AS bytes
FROM product WHERE width[1] IS NOT NULL AND width[2] IS NOT NULL AND width[3] IS NOT NULL GROUP BY name)"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    out.push_back({row.text("name"), row.integer("launches"), row.real("bytes")});
  }
  return out;
}

OperatorBytes StageBytes::all() const {
  OperatorBytes out;
  for (const OperatorBytes& op : operators) {
    out.flops += op.flops;
    out.weight_bytes += op.weight_bytes;
    out.kv_bytes += op.kv_bytes;
    out.activation_bytes += op.activation_bytes;
  }
  return out;
}

Result<std::vector<StageBytes>> stage_bytes(const trace::Run& run) {
  std::vector<StageBytes> out;
  LLMPROF_LET(const trace::ResultTable sizes, ask(run, "sql/stage_sizes"));
  for (std::size_t i = 0; i < sizes.rows.size(); ++i) {
    const RowView row{sizes, i};
    out.push_back({.stage = row.text("stage"),
                   .operators = {},
                   .batch = row.maybe_real("batch").value_or(0),
                   .tokens = row.maybe_real("tokens").value_or(0),
                   .context = row.maybe_real("context").value_or(0),
                   .largest_context = row.maybe_real("largest_context").value_or(0)});
  }
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/stage_operator_bytes"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    for (StageBytes& stage : out) {
      if (stage.stage != row.text("stage")) continue;
      stage.operators.push_back({.op = row.text("op"),
                                 .flops = row.real("flops"),
                                 .weight_bytes = row.real("weight_bytes"),
                                 .kv_bytes = row.real("kv_bytes"),
                                 .activation_bytes = row.real("activation_bytes")});
    }
  }
  return out;
}

const StageBytes* find_stage(const std::vector<StageBytes>& stages, std::string_view name) {
  for (const StageBytes& stage : stages) {
    if (stage.stage == name) return &stage;
  }
  return nullptr;
}

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
