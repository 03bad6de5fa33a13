-- title: Stages and their steps
-- unit: ns
-- Quantiles are exact and observed: quantile_disc gives the smallest duration that at least that share of the steps does
-- not exceed. A step lasts from its turn to its end; a prefill step from its begin, as somebody waits for it.
-- Steps in which hardware counters were read take longer, and so do steps in which the program warms up: quantiles are those
-- of the others, where there are any.
WITH lasted AS (
  SELECT *, greatest(end_ns - CASE WHEN stage = 'prefill' THEN begin_ns ELSE turn_ns END, 0) AS lasted_ns
  FROM paced_step),
timed AS (
  SELECT *, CASE WHEN steady THEN lasted_ns END AS plain_ns
  FROM lasted)
SELECT stage AS name, count(*) AS steps, sum(kernels)::BIGINT AS kernels,
  CASE WHEN count(*) = count(*) FILTER (source = 'declared') THEN 'declared' ELSE 'inferred' END AS source,
  min(confidence) AS confidence,
  quantile_disc(plain_ns, 0.5) AS step_p50_ns,
  quantile_disc(plain_ns, 0.9) AS step_p90_ns,
  quantile_disc(plain_ns, 0.99) AS step_p99_ns,
  count(*) FILTER (counted) AS measured_steps,
  count(*) FILTER (warm_up) AS warm_up_steps,
  coalesce(sum(lasted_ns) FILTER (warm_up), 0)::BIGINT AS warm_up_ns
FROM timed
GROUP BY stage
ORDER BY min(begin_ns);
