-- title: Matrix products by operator
-- unit: ns
-- One row per stage, operator and shape: [m, k] x [k, n], batch times in each call. The costliest first.
SELECT a.stage, a.op, g.m, g.n, g.k, g.batch, count(*) AS calls, sum(g.end_ns - g.begin_ns)::BIGINT AS time_ns
FROM gemm AS g JOIN attribution AS a ON a.gemm_id = g.id
WHERE a.op IS NOT NULL
GROUP BY ALL
ORDER BY time_ns DESC, a.stage, a.op, g.m, g.n, g.k, g.batch;
