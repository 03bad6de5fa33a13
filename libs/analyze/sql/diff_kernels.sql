-- title: Kernels of each part of the model, by name and shape
-- unit: ns
-- Of steps only; estimated graph nodes included. Shapes are those of the BLAS call that the kernel belongs to.
SELECT w.stage, w.module, w.op, w.name, g.m, g.n, g.k, g.batch AS products, g.type_a AS type, sum(w.executions)::BIGINT AS executions,
  sum(w.time_ns)::BIGINT AS time_ns, coalesce(sum(w.time_ns) FILTER (w.source = 'estimated'), 0)::BIGINT AS estimated_ns
FROM work_sum AS w LEFT JOIN gemm AS g ON g.id = w.gemm_id
WHERE w.in_step AND w.stage IS NOT NULL
GROUP BY ALL
ORDER BY time_ns DESC, w.stage, w.module, w.name;
