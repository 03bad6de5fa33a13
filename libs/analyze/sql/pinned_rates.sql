-- title: The fastest copies from and to pinned memory
-- unit: B/s
-- Of copies of 1 MB or more; small ones are latency.
SELECT direction, max(bytes / (end_ns - begin_ns) * 1e9) AS bytes_per_s, count(*) AS copies
FROM copy
WHERE host_memory = 'pinned' AND bytes >= 1000000 AND end_ns > begin_ns
GROUP BY direction
ORDER BY direction;
