-- title: Who owned the time of each stage's steps
-- unit: ns
-- One row per stage, owner and operator; sample: the step begins a TPOT sample, and after_ns is of the time to the next step.
SELECT s.stage, t.after_ns IS NOT NULL AS sample, t.owner, t.op, sum(t.time_ns)::BIGINT AS time_ns,
  coalesce(sum(t.after_ns), 0)::BIGINT AS after_ns
FROM step_time AS t JOIN step AS s ON s.id = t.step_id
WHERE NOT s.warm_up
GROUP BY ALL
ORDER BY s.stage, sample, t.owner, t.op;
