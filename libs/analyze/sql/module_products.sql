-- title: FLOPs of the BLAS calls of each module
-- unit: FLOP
-- 2 m n k x batch of the calls that belong to the module itself, those of modules inside it left out.
SELECT a.stage, a.module, sum(2.0 * g.m * g.n * g.k * g.batch) AS flops
FROM gemm AS g JOIN attribution AS a ON a.gemm_id = g.id
WHERE a.module IS NOT NULL AND a.step_id IS NOT NULL
GROUP BY a.stage, a.module
ORDER BY a.stage, a.module;
