-- title: Copies from host to device over the program's life
-- unit: ns, bytes
-- Copies of the same hundredth of a second together: from the first one on, as long as they took.
SELECT coalesce(t.process_id, 0) AS process_id, min(c.begin_ns) AS begin_ns,
  least(max(c.end_ns), min(c.begin_ns) + CAST(sum(c.end_ns - c.begin_ns) AS BIGINT)) AS end_ns, count(*) AS copies,
  CAST(sum(c.bytes) AS BIGINT) AS bytes
FROM copy AS c LEFT JOIN thread AS t ON t.id = c.thread_id
WHERE c.direction = 'host_to_device'
GROUP BY coalesce(t.process_id, 0), c.begin_ns // 10000000
ORDER BY begin_ns;
