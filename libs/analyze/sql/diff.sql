-- question: diff_kernels
-- Kernels of each part of the model, by name and shape.
-- Of steps only; estimated graph nodes included. Shapes are those of the BLAS call that the kernel belongs to.
SELECT w.stage, w.module, w.op, w.name, g.m, g.n, g.k, g.batch AS products, g.type_a AS type, sum(w.executions)::BIGINT AS executions,
  sum(w.time_ns)::BIGINT AS time_ns, coalesce(sum(w.time_ns) FILTER (w.source = 'estimated'), 0)::BIGINT AS estimated_ns
FROM work_sum AS w LEFT JOIN gemm AS g ON g.id = w.gemm_id
WHERE w.in_step AND w.stage IS NOT NULL
GROUP BY ALL
ORDER BY time_ns DESC, w.stage, w.module, w.name;

-- question: diff_part_batches
-- Kernel time of each part of the model in batches of steps.
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

-- question: diff_range_batches
-- Host time of each part of the model in batches of steps.
-- As diff_part_batches, by ranges: total_ns of the module's own ranges, self_ns of all that lies in it and in no module inside.
WITH placed AS (
  SELECT id, stage, ntile(32) OVER (PARTITION BY stage ORDER BY begin_ns, id) AS batch FROM paced_step WHERE steady),
sizes AS (
  SELECT stage, batch, count(*) AS steps FROM placed GROUP BY ALL)
SELECT p.stage, p.batch, any_value(s.steps) AS steps, r.module, any_value(r.op) AS op,
  coalesce(sum(r.total_ns) FILTER (r.kind = 'module'), 0)::BIGINT AS total_ns, sum(r.self_ns)::BIGINT AS self_ns
FROM range_time AS r
JOIN placed AS p ON p.id = r.step_id
JOIN sizes AS s ON s.stage = p.stage AND s.batch = p.batch
WHERE r.module IS NOT NULL
GROUP BY p.stage, p.batch, r.module;

-- question: diff_steps
-- Times of steps that a comparison is made from, in order of time.
-- lasted_ns: from the turn of a step to its end, of prefill from its begin. sample_ns: of a decode step, to the turn of the next
-- where both make a TPOT sample; else NULL.
-- Steps in which hardware counters were read or the program warms up take longer and are left out, where there are others
-- of their stage.
WITH timed AS (
  SELECT id, begin_ns, stage, greatest(end_ns - CASE WHEN stage = 'prefill' THEN begin_ns ELSE turn_ns END, 0)::BIGINT AS lasted_ns,
    CASE WHEN stage = 'decode' AND lead(stage) OVER follow = 'decode' AND batch IS NOT DISTINCT FROM lead(batch) OVER follow
      THEN greatest(lead(turn_ns) OVER follow - turn_ns, 0) END AS sample_ns,
    batch, context, tokens, steady
  FROM paced_step
  WINDOW follow AS (PARTITION BY thread_id ORDER BY begin_ns))
SELECT id, stage, lasted_ns, sample_ns, batch, context, tokens
FROM timed
WHERE steady
ORDER BY begin_ns, id;
