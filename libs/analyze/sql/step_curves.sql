-- title: How long each step took, in order of time
-- unit: ns
-- A host that runs ahead opens steps while the device still executes those before: a step counts from the end of the steps
-- before it on its thread, or from its own begin where they are over; a prefill step from its begin, as somebody waits for it.
SELECT stage, begin_ns,
  greatest(0, end_ns - CASE WHEN stage = 'prefill' THEN begin_ns
    ELSE greatest(begin_ns, coalesce(max(end_ns) OVER before, begin_ns)) END)::BIGINT AS duration_ns,
  coalesce(batch, 0) AS batch, coalesce(context, 0) AS context
FROM step
WINDOW before AS (PARTITION BY process_id, thread_id ORDER BY begin_ns, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
ORDER BY begin_ns, id;
