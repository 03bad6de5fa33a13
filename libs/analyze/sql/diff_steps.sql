-- title: Times of steps that a comparison is made from, in order of time
-- unit: ns
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
