-- title: Resident memory of each process over time
-- unit: ns, bytes
-- For the memory of all processes together, and for the memory that ranges gained. The last reading of a process that
-- ended has no memory left.
SELECT u.process_id, u.ts_ns, u.rss_bytes, p.pid
FROM process_usage AS u JOIN process AS p ON p.id = u.process_id
ORDER BY u.ts_ns, u.process_id;
