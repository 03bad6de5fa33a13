-- title: How long each step took, in order of time
-- unit: ns
-- A step lasts from its turn to its end: a host that runs ahead of the device does not make it longer. A prefill step lasts
-- from its begin, as somebody waits for it.
SELECT stage, begin_ns,
  greatest(end_ns - CASE WHEN stage = 'prefill' THEN begin_ns ELSE turn_ns END, 0)::BIGINT AS duration_ns,
  coalesce(batch, 0) AS batch, coalesce(context, 0) AS context
FROM step
ORDER BY begin_ns, id;
