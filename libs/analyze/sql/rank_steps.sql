-- title: Steps of the ranks of a job, with and without their collectives
-- unit: ns
-- A step begins where the one before it on its thread has ended, if that is later.
WITH ordered AS (
  SELECT s.*, p.rank, greatest(s.begin_ns, coalesce(lag(s.end_ns) OVER (PARTITION BY s.thread_id ORDER BY s.begin_ns), 0)) AS from_ns
  FROM step AS s JOIN process AS p ON p.id = s.process_id
  WHERE p.rank IS NOT NULL),
collective AS (
  SELECT a.step_id, sum(k.end_ns - k.begin_ns) AS ns
  FROM kernel AS k JOIN attribution AS a ON a.kernel_id = k.id
  WHERE a.step_id IS NOT NULL AND (k.name LIKE '%nccl%' OR k.name LIKE '%rccl%' OR k.name LIKE '%all_reduce%' OR k.name LIKE '%cross_device_reduce%')
  GROUP BY a.step_id)
SELECT o.stage, o.number, o.rank, CAST(coalesce(c.ns, 0) AS BIGINT) AS collective_ns,
  CAST(greatest(o.end_ns - o.from_ns - coalesce(c.ns, 0), 0) AS BIGINT) AS own_ns
FROM ordered AS o LEFT JOIN collective AS c ON c.step_id = o.id
WHERE o.stage NOT IN ('load', 'warm-up')
ORDER BY ALL;
