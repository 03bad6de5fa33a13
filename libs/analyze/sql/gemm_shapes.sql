-- title: Matrix products by shape
-- unit: ns
-- One row per stage, function, type and shape, the costliest first; ops are the operators that called it, by time. The stage
-- is NULL for calls outside any step.
WITH used AS (
  SELECT CASE WHEN a.step_id IS NOT NULL THEN a.stage END AS stage, g.function, g.type_a AS type, g.m, g.n, g.k, g.batch,
    a.op, count(*) AS calls, sum(g.end_ns - g.begin_ns)::BIGINT AS time_ns
  FROM gemm AS g LEFT JOIN attribution AS a ON a.gemm_id = g.id
  GROUP BY ALL)
SELECT stage, function, type, m, n, k, batch, sum(calls)::BIGINT AS calls, sum(time_ns)::BIGINT AS time_ns,
  string_agg(op, ', ' ORDER BY used.time_ns DESC, op) AS ops
FROM used
GROUP BY stage, function, type, m, n, k, batch
ORDER BY time_ns DESC, stage, function, m, n, k;
