-- title: What an allocator had given out at one moment, or gave out after it and never got back, by stack
-- unit: bytes
-- The caller puts the device, the moment and which of the two into the first line. A stack is shown by its four innermost frames, those
-- of Python if it has any, without those of the framework's own bookkeeping.
WITH asked AS (SELECT 0 AS device, 0 AS moment, false AS never_freed),
there AS (
  SELECT bytes, stack_id
  FROM allocation, asked
  WHERE device_id = device
    AND CASE WHEN never_freed THEN begin_ns > moment AND end_ns IS NULL ELSE begin_ns <= moment AND (end_ns IS NULL OR end_ns > moment) END
    AND (kind = 'tensor' OR kind = 'pool'
    AND device NOT IN (SELECT device_id FROM allocation WHERE kind = 'tensor' AND device_id IS NOT NULL))),
stacks AS (
  SELECT stack_id, count(*) AS allocations, sum(bytes)::BIGINT AS bytes, max(bytes) AS largest_bytes
  FROM there GROUP BY stack_id),
frames AS (
  SELECT s.stack_id, s.depth, f.kind = 'python' AS python,
    concat(f.function, CASE WHEN f.line IS NULL THEN '' ELSE concat(' (', regexp_extract(f.file, '[^/]*$'), ':', f.line, ')') END) AS place
  FROM stack AS s JOIN frame AS f ON f.id = s.frame_id
  WHERE s.stack_id IN (SELECT stack_id FROM stacks) AND f.function IS NOT NULL AND f.function NOT IN ('??', '')
    AND NOT regexp_matches(f.function, '^(_call_impl|_wrapped_call_impl|decorate_context)$|torch::unwind|CapturedTraceback|CachingAllocator|gather_with_cpp')),
shown AS (
  SELECT stack_id, depth, place, row_number() OVER (PARTITION BY stack_id ORDER BY depth) AS number
  FROM frames AS f
  WHERE python OR NOT EXISTS (SELECT 1 FROM frames AS p WHERE p.stack_id = f.stack_id AND p.python)),
paths AS (SELECT stack_id, string_agg(place, ' < ' ORDER BY depth) AS stack FROM shown WHERE number <= 4 GROUP BY stack_id)
SELECT p.stack, sum(s.allocations)::BIGINT AS allocations, sum(s.bytes)::BIGINT AS bytes, max(s.largest_bytes) AS largest_bytes
FROM stacks AS s LEFT JOIN paths AS p ON p.stack_id = s.stack_id
GROUP BY p.stack
ORDER BY bytes DESC, p.stack;
