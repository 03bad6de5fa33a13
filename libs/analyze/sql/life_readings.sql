-- title: CPU time of processes between two readings
-- unit: ns
-- Readings that come more often than the kernel's clock ticks are taken together.
WITH tenth AS (
  SELECT process_id, max(ts_ns) AS ts_ns, max(user_ns + system_ns) AS cpu_ns
  FROM process_usage GROUP BY process_id, ts_ns // 100000000)
SELECT process_id, lag(ts_ns) OVER own AS begin_ns, ts_ns AS end_ns, CAST(cpu_ns - lag(cpu_ns) OVER own AS BIGINT) AS cpu_ns
FROM tenth WINDOW own AS (PARTITION BY process_id ORDER BY ts_ns)
QUALIFY begin_ns IS NOT NULL
ORDER BY ts_ns;
