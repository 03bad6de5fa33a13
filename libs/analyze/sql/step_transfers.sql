-- title: Copies and collectives of steps
-- unit: bytes, ns
-- A copy belongs to the latest step of its thread that had begun when it was asked for, if that was still open.
WITH asked AS (
  SELECT c.begin_ns, c.end_ns, c.device_id, c.bytes, c.thread_id, coalesce(c.launch_begin_ns, c.begin_ns) AS at_ns,
         CAST(coalesce(c.host_memory = 'pageable', false) AS BIGINT) AS pageable
  FROM copy AS c
  WHERE c.direction IN ('host_to_device', 'device_to_host', 'peer')),
own AS (SELECT * FROM step)
SELECT s.stage, a.device_id, a.begin_ns, a.end_ns, a.bytes, a.pageable, CAST(0 AS BIGINT) AS collective
FROM asked AS a ASOF JOIN own AS s ON a.thread_id = s.thread_id AND a.at_ns >= s.begin_ns
WHERE a.at_ns <= s.end_ns AND s.stage NOT IN ('load', 'warm-up')
UNION ALL
SELECT p.stage, k.device_id, k.begin_ns, k.end_ns, 0, 0, 1
FROM kernel AS k JOIN attribution AS p ON p.kernel_id = k.id
WHERE p.step_id IS NOT NULL AND p.stage NOT IN ('load', 'warm-up')
  AND (k.name LIKE '%nccl%' OR k.name LIKE '%rccl%' OR k.name LIKE '%all_reduce%' OR k.name LIKE '%cross_device_reduce%')
ORDER BY 2, 3;
