-- title: Ranges that readings of memory can tell apart
-- unit: ns
-- Those that lasted at least as long as the time between two readings of their process. Outer ranges come first. Steps of
-- a stage are one name.
WITH period AS (
  SELECT process_id, quantile_disc(gap_ns, 0.5) AS ns
  FROM (SELECT process_id, ts_ns - lag(ts_ns) OVER (PARTITION BY process_id ORDER BY ts_ns) AS gap_ns FROM process_usage)
  WHERE gap_ns IS NOT NULL
  GROUP BY process_id)
SELECT r.process_id, r.thread_id, r.begin_ns, r.end_ns, t.stage,
  CASE WHEN t.kind = 'module' THEN t.module WHEN t.kind = 'step' THEN t.stage || ' step' ELSE r.name END AS name
FROM range AS r
JOIN period AS p ON p.process_id = r.process_id
LEFT JOIN range_time AS t ON t.range_id = r.id
WHERE r.kind IS DISTINCT FROM 'mark' AND r.end_ns - r.begin_ns >= p.ns
ORDER BY r.process_id, r.thread_id, r.begin_ns, r.end_ns DESC, r.depth;
