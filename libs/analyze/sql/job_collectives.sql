-- title: Collectives in passes that ranges name
-- unit: kernels
-- Of the first 5000 collective kernels, those launched while a range of their process named prefill, decode, forward, backward
-- or optimizer was open, on whatever thread. forward: one of the first three; reduces: an all-reduce.
WITH collective AS (
  SELECT t.process_id, coalesce(k.launch_begin_ns, k.begin_ns) AS at_ns,
    k.name ILIKE '%allreduce%' OR k.name ILIKE '%all_reduce%' OR k.name ILIKE '%cross_device_reduce%' AS reduces
  FROM kernel AS k JOIN thread AS t ON t.id = k.thread_id
  WHERE k.name ILIKE '%nccl%' OR k.name ILIKE '%rccl%' OR k.name ILIKE '%all_reduce%' OR k.name ILIKE '%cross_device_reduce%'
  ORDER BY at_ns
  LIMIT 5000),
pass AS (
  SELECT process_id, begin_ns, end_ns, lower(name) IN ('prefill', 'decode', 'forward') AS forward
  FROM range
  WHERE lower(name) IN ('prefill', 'decode', 'forward', 'backward', 'optimizer'))
SELECT p.forward, c.reduces, count(*) AS kernels
FROM collective AS c JOIN pass AS p ON p.process_id = c.process_id AND c.at_ns >= p.begin_ns AND c.at_ns < p.end_ns
GROUP BY ALL
ORDER BY ALL;
