-- title: Events recorded in each stage
-- unit: counts
-- A range is two events, its begin and its end; a BLAS call is one.
WITH ranges AS (
  SELECT stage, 2 * sum(ranges) AS events FROM range_sum WHERE in_step GROUP BY stage),
calls AS (
  SELECT a.stage, count(*) AS events
  FROM gemm AS g JOIN attribution AS a ON a.kernel_id = g.kernel_id
  WHERE a.step_id IS NOT NULL
  GROUP BY a.stage)
SELECT coalesce(r.stage, c.stage) AS stage, coalesce(r.events, 0)::BIGINT AS range_events,
  coalesce(c.events, 0)::BIGINT AS gemm_events
FROM ranges AS r FULL JOIN calls AS c ON c.stage = r.stage
ORDER BY stage;
