-- title: FLOPs of the BLAS calls of each module
-- unit: FLOP
-- 2 m n k x batch of the calls that belong to the module itself, those of modules inside it left out.
SELECT w.stage, w.module, sum(2.0 * g.m * g.n * g.k * g.batch * w.gemm_calls) AS flops
FROM work_product AS w JOIN gemm AS g ON g.id = w.gemm_id
WHERE w.module IS NOT NULL AND w.in_step AND w.gemm_calls > 0
GROUP BY w.stage, w.module
ORDER BY w.stage, w.module;
