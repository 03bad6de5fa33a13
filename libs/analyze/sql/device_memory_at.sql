-- title: The largest allocations of a device at one moment, by ranges and function
-- unit: bytes
-- The caller puts the device and the moment into the first line. Ranges are those that were open on the allocating
-- thread; the function is the innermost of Python, else the innermost.
WITH asked AS (SELECT 0 AS device, 0 AS moment),
there AS (
  SELECT id, bytes, kind, thread_id, begin_ns, stack_id
  FROM allocation, asked
  WHERE device_id = device AND kind IS DISTINCT FROM 'pinned' AND kind IS DISTINCT FROM 'segment'
    AND (kind IS DISTINCT FROM 'pool'
      OR device NOT IN (SELECT device_id FROM allocation WHERE kind = 'tensor' AND device_id IS NOT NULL))
    AND begin_ns <= moment AND (end_ns IS NULL OR end_ns > moment)),
largest AS (SELECT * FROM there ORDER BY bytes DESC, id LIMIT 200),
placed AS (
  SELECT l.id, string_agg(r.name, ' › ' ORDER BY r.begin_ns, r.end_ns DESC) AS ranges
  FROM largest AS l JOIN range AS r
    ON r.thread_id = l.thread_id AND r.begin_ns <= l.begin_ns AND r.end_ns >= l.begin_ns AND r.kind IS DISTINCT FROM 'mark'
  GROUP BY l.id),
called AS (
  SELECT l.id, arg_min(CASE WHEN f.line IS NULL THEN f.function ELSE concat(f.function, ' (', f.file, ':', f.line, ')') END,
                       CASE WHEN f.kind = 'python' THEN 0 ELSE 100000 END + s.depth) AS function
  FROM largest AS l JOIN stack AS s ON s.stack_id = l.stack_id JOIN frame AS f ON f.id = s.frame_id
  WHERE f.function IS NOT NULL AND NOT regexp_matches(f.function, 'torch::unwind|CapturedTraceback|CachingAllocator|gather_with_cpp')
  GROUP BY l.id)
SELECT p.ranges, c.function, l.kind, count(*) AS allocations, sum(l.bytes)::BIGINT AS bytes, max(l.bytes) AS largest_bytes,
  (SELECT count(*) FROM there) AS all_allocations
FROM largest AS l LEFT JOIN placed AS p ON p.id = l.id LEFT JOIN called AS c ON c.id = l.id
GROUP BY p.ranges, c.function, l.kind
ORDER BY bytes DESC, p.ranges, c.function, l.kind;
