-- title: Kernels of the steps that belong to no module
-- unit: ns, FLOP
-- One row per stage that has such kernels; flops are those of the BLAS calls among them.
SELECT w.stage, sum(w.executions)::BIGINT AS kernels, sum(w.time_ns)::BIGINT AS kernel_ns,
  sum(coalesce(p.call_flops, 2.0 * g.m * g.n * g.k * g.batch) * w.gemm_calls) AS flops
FROM work_sum AS w LEFT JOIN gemm AS g ON g.id = w.gemm_id
LEFT JOIN gemm_group AS p ON p.gemm_id = w.gemm_id
WHERE w.in_step AND w.module IS NULL
GROUP BY w.stage
ORDER BY w.stage;
