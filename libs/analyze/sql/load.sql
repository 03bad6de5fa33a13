-- title: How a program spends the time before the model is ready
-- unit: bytes, ns
-- The longest step of stage load, or what passed before the first step of the process that makes most of them. function: the
-- innermost one with a name that most samples of the loading thread are in, Python's where there is one, as it tells which
-- line to change.
WITH busiest AS (SELECT process_id FROM step WHERE stage <> 'load' GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1),
first AS (
  SELECT s.process_id, s.thread_id, s.begin_ns FROM step AS s JOIN busiest USING (process_id)
  WHERE s.stage <> 'load' ORDER BY s.begin_ns LIMIT 1),
load AS (
  SELECT 1 AS declared, process_id, thread_id, begin_ns, end_ns FROM (
    SELECT * FROM step WHERE stage = 'load' ORDER BY end_ns - begin_ns DESC LIMIT 1)
  UNION ALL
  SELECT 0, f.process_id, f.thread_id, p.begin_ns, f.begin_ns FROM first AS f JOIN process_life AS p USING (process_id)
  ORDER BY 1 DESC LIMIT 1),
usage AS (
  SELECT CAST(max(u.user_ns + u.system_ns) - min(u.user_ns + u.system_ns) AS BIGINT) AS process_cpu_ns,
    CAST(max(u.read_bytes) - min(u.read_bytes) AS BIGINT) AS read_bytes,
    CAST(max(u.major_faults) - min(u.major_faults) AS BIGINT) AS major_faults,
    CAST(max(u.involuntary_switches) - min(u.involuntary_switches) AS BIGINT) AS involuntary_switches
  FROM process_usage AS u JOIN load AS l ON u.process_id = l.process_id AND u.ts_ns BETWEEN l.begin_ns AND l.end_ns
  HAVING count(*) >= 2),
own AS (
  SELECT s.id, s.stack_id, s.weight_ns
  FROM sample AS s JOIN load AS l ON s.thread_id = l.thread_id AND s.ts_ns BETWEEN l.begin_ns AND l.end_ns),
named AS (
  SELECT o.id, o.weight_ns,
    arg_min(f.function, CASE WHEN f.kind = 'python' THEN st.depth ELSE 1000000 + st.depth END) AS function
  FROM own AS o LEFT JOIN stack AS st ON st.stack_id = o.stack_id LEFT JOIN frame AS f ON f.id = st.frame_id GROUP BY ALL),
sampled AS (
  SELECT coalesce(function, '') AS function, sum(weight_ns) AS ns, CAST(sum(sum(weight_ns)) OVER () AS BIGINT) AS thread_cpu_ns
  FROM named GROUP BY 1 ORDER BY ns DESC, 1 LIMIT 1),
copied AS (
  SELECT count(*) AS copies, coalesce(CAST(sum(c.bytes) AS BIGINT), 0) AS copied_bytes,
    coalesce(CAST(sum(c.bytes) FILTER (c.host_memory = 'pageable') AS BIGINT), 0) AS pageable_bytes,
    coalesce(CAST(sum(c.end_ns - c.begin_ns) AS BIGINT), 0) AS copy_ns,
    max(c.bytes * 1e9 / (c.end_ns - c.begin_ns)) FILTER (c.bytes >= 1000000 AND c.end_ns > c.begin_ns) AS best_copy_rate
  FROM copy AS c JOIN load AS l ON c.begin_ns BETWEEN l.begin_ns AND l.end_ns WHERE c.direction = 'host_to_device')
SELECT l.*, u.*, s.function, s.thread_cpu_ns, s.ns / nullif(s.thread_cpu_ns, 0) AS function_share, c.*
FROM load AS l CROSS JOIN copied AS c LEFT JOIN usage AS u ON true LEFT JOIN sampled AS s ON true;
