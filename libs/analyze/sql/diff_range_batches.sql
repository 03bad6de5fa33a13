-- title: Host time of each part of the model in batches of steps
-- unit: ns
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
