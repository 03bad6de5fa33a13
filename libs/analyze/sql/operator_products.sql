-- title: Matrix products by operator
-- unit: ns
-- One row per stage, operator and shape: [m, k] x [k, n], batch times in each call. time_ns: of the kernels that the calls
-- launched; groups of one call share its time by FLOPs. The costliest first.
SELECT w.stage, w.op, g.m, g.n, g.k, g.batch, sum(w.gemm_calls)::BIGINT AS calls, sum(w.time_ns)::BIGINT AS time_ns
FROM work_product AS w JOIN gemm AS g ON g.id = w.gemm_id
WHERE w.op IS NOT NULL
GROUP BY ALL
ORDER BY time_ns DESC, w.stage, w.op, g.m, g.n, g.k, g.batch;
