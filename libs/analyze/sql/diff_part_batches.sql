-- title: Kernel time of each part of the model in batches of steps
-- unit: ns
-- The steps of a stage, in order of time, in at most 32 batches of nearly equal size: successive steps are correlated, batches
-- hardly. Only steps that the comparison of stages is made from (paced_step.steady). steps: of the batch. Only kernels that were measured.
WITH placed AS (
  SELECT id, stage, ntile(32) OVER (PARTITION BY stage ORDER BY begin_ns, id) AS batch FROM paced_step WHERE steady),
sizes AS (
  SELECT stage, batch, count(*) AS steps FROM placed GROUP BY ALL)
SELECT p.stage, p.batch, any_value(s.steps) AS steps, a.module, a.op, g.m, g.n, g.k, g.batch AS products, g.type_a AS type,
  sum(k.end_ns - k.begin_ns)::BIGINT AS time_ns
FROM kernel AS k
JOIN attribution AS a ON a.kernel_id = k.id
JOIN placed AS p ON p.id = a.step_id
JOIN sizes AS s ON s.stage = p.stage AND s.batch = p.batch
LEFT JOIN gemm AS g ON g.id = a.gemm_id
GROUP BY p.stage, p.batch, a.module, a.op, g.m, g.n, g.k, g.batch, g.type_a;
