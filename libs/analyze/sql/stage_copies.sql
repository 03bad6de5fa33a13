-- title: Copies between host and device in each stage
-- unit: bytes, ns
-- A copy belongs to the last step that its thread had begun when it asked for it. call_ns: host time inside the asking calls.
-- largest_bytes: of one copy.
WITH asked AS (
  SELECT thread_id, coalesce(launch_begin_ns, begin_ns) AS at_ns, direction, host_memory, bytes, end_ns - begin_ns AS time_ns,
    launch_end_ns - launch_begin_ns AS call_ns
  FROM copy
  WHERE direction IN ('host_to_device', 'device_to_host'))
SELECT s.stage, c.direction, c.host_memory, count(*) AS copies, count(DISTINCT s.id) AS steps, sum(c.bytes)::BIGINT AS bytes,
  max(c.bytes) AS largest_bytes, sum(c.time_ns)::BIGINT AS time_ns, coalesce(sum(c.call_ns), 0)::BIGINT AS call_ns
FROM asked AS c ASOF JOIN step AS s ON c.thread_id = s.thread_id AND c.at_ns >= s.begin_ns
GROUP BY s.stage, c.direction, c.host_memory
ORDER BY s.stage, time_ns DESC, c.direction, c.host_memory;
