-- title: Time per output token
-- unit: ns
-- A sample is the time from the turn of a decode step (its begin, or the end of the step before it where the host ran ahead of
-- the device) to that of the next, so host gaps count. Both steps follow each other on one thread with nothing between them,
-- and work on as many sequences: a prefill in between starts a new series.
-- Quantiles are exact and observed (quantile_disc). Samples with a step in which hardware counters were read, or before one,
-- are longer, and so are those in which the program warms up: they count only where there are no others.
WITH ordered AS (
  SELECT stage, batch, turn_ns, lead(stage) OVER follow AS next_stage, lead(batch) OVER follow AS next_batch,
    lead(turn_ns) OVER follow AS next_turn_ns,
    warm_up OR counted OR coalesce(lead(counted) OVER follow, false) AS slow
  FROM paced_step
  WINDOW follow AS (PARTITION BY thread_id ORDER BY begin_ns)),
samples AS (
  SELECT next_turn_ns - turn_ns AS sample_ns, slow
  FROM ordered
  WHERE stage = 'decode' AND next_stage = 'decode' AND batch IS NOT DISTINCT FROM next_batch)
SELECT count(*) AS samples,
  quantile_disc(sample_ns, 0.5) AS tpot_p50_ns,
  quantile_disc(sample_ns, 0.9) AS tpot_p90_ns,
  quantile_disc(sample_ns, 0.99) AS tpot_p99_ns
FROM samples
WHERE NOT slow OR (SELECT bool_and(slow) FROM samples);
