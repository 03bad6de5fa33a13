-- title: Time per output token
-- unit: ns
-- A sample is the time from the turn of a decode step (its begin, or the end of the step before it where the host ran ahead of
-- the device) to that of the next, so host gaps count. Both steps follow each other on one thread with nothing between them,
-- and work on as many sequences: a prefill in between starts a new series.
-- Quantiles are exact and observed (quantile_disc).
WITH ordered AS (
  SELECT stage, batch, turn_ns, lead(stage) OVER follow AS next_stage, lead(batch) OVER follow AS next_batch,
    lead(turn_ns) OVER follow AS next_turn_ns
  FROM step
  WINDOW follow AS (PARTITION BY thread_id ORDER BY begin_ns))
SELECT count(*) AS samples,
  quantile_disc(next_turn_ns - turn_ns, 0.5) AS tpot_p50_ns,
  quantile_disc(next_turn_ns - turn_ns, 0.9) AS tpot_p90_ns,
  quantile_disc(next_turn_ns - turn_ns, 0.99) AS tpot_p99_ns
FROM ordered
WHERE stage = 'decode' AND next_stage = 'decode' AND batch IS NOT DISTINCT FROM next_batch;
