-- title: Kernels of the steps that belong to no module
-- unit: ns, FLOP
-- One row per stage that has such kernels; flops are those of the BLAS calls among them.
SELECT a.stage, count(*) AS kernels, sum(k.end_ns - k.begin_ns)::BIGINT AS kernel_ns,
  sum(2.0 * g.m * g.n * g.k * g.batch) AS flops
FROM attribution AS a JOIN kernel AS k ON k.id = a.kernel_id LEFT JOIN gemm AS g ON g.id = a.gemm_id
WHERE a.step_id IS NOT NULL AND a.module IS NULL
GROUP BY a.stage
ORDER BY a.stage;
