-- title: Device memory that is allocated and freed inside steps
-- unit: bytes, ns
-- A caching allocator takes what it needs in the first steps: these do not count. Memory of pools is not given back to the
-- device, so it is cheap.
WITH later AS (SELECT * FROM step WHERE number > 0 AND stage NOT IN ('load', 'warm-up')),
moments AS (
  SELECT process_id, begin_ns AS at_ns, bytes, 1 AS taken FROM allocation
  WHERE kind IN ('device', 'managed', 'segment') AND device_id IS NOT NULL
  UNION ALL
  SELECT process_id, end_ns, 0, 0 FROM allocation
  WHERE kind IN ('device', 'managed', 'segment') AND device_id IS NOT NULL AND end_ns IS NOT NULL),
placed AS (
  SELECT s.id, s.stage, m.taken, m.bytes
  FROM moments AS m ASOF JOIN later AS s ON m.process_id = s.process_id AND m.at_ns >= s.begin_ns
  WHERE m.at_ns < s.end_ns),
sums AS (
  SELECT stage, count(DISTINCT id) AS steps_allocating, CAST(sum(taken) AS BIGINT) AS allocations,
         CAST(sum(1 - taken) AS BIGINT) AS releases, CAST(sum(bytes) AS BIGINT) AS bytes
  FROM placed GROUP BY stage),
calls AS (
  SELECT s.stage, CAST(sum(a.end_ns - a.begin_ns) AS BIGINT) AS ns
  FROM (SELECT * FROM api WHERE regexp_matches(name, '(cudaMalloc|cuMemAlloc|cudaFree|cuMemFree|hipMalloc|hipFree)')
          AND NOT contains(name, 'Async') AND NOT contains(name, 'Host')) AS a
  ASOF JOIN later AS s ON a.thread_id = s.thread_id AND a.begin_ns >= s.begin_ns
  WHERE a.begin_ns < s.end_ns GROUP BY s.stage)
SELECT l.stage, count(*) AS steps, coalesce(any_value(x.steps_allocating), 0) AS steps_allocating,
  coalesce(any_value(x.allocations), 0) AS allocations, coalesce(any_value(x.releases), 0) AS releases,
  coalesce(any_value(x.bytes), 0) AS bytes, any_value(c.ns) AS calls_ns
FROM later AS l LEFT JOIN sums AS x ON x.stage = l.stage LEFT JOIN calls AS c ON c.stage = l.stage
GROUP BY l.stage ORDER BY min(l.begin_ns);
