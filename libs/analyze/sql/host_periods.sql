-- title: How often each process was read
-- unit: ns
-- The median time from one reading to the next; processes read at least twice.
SELECT process_id, quantile_disc(gap_ns, 0.5) AS period_ns
FROM (SELECT process_id, ts_ns - lag(ts_ns) OVER (PARTITION BY process_id ORDER BY ts_ns) AS gap_ns FROM process_usage)
WHERE gap_ns IS NOT NULL
GROUP BY process_id
ORDER BY process_id;
