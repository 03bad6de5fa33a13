-- title: Segments that an allocator holds, by pool
-- unit: bytes
-- free: not given to the program and not waiting for a stream. between: of that, in segments that hold something; the
-- rest could be given back to the device.
WITH blocks AS (
  SELECT memory_segment_id, max(bytes) FILTER (state = 'inactive') AS largest_free_bytes
  FROM memory_block GROUP BY memory_segment_id)
SELECT s.device_id, s.kind, count(*) AS segments, sum(s.bytes)::BIGINT AS bytes,
  sum(s.allocated_bytes)::BIGINT AS allocated_bytes, sum(s.active_bytes)::BIGINT AS active_bytes,
  sum(s.requested_bytes)::BIGINT AS requested_bytes, sum(s.bytes - s.active_bytes)::BIGINT AS free_bytes,
  coalesce(max(b.largest_free_bytes), 0) AS largest_free_bytes,
  coalesce(sum(s.bytes - s.active_bytes) FILTER (s.active_bytes > 0), 0)::BIGINT AS between_bytes
FROM memory_segment AS s LEFT JOIN blocks AS b ON b.memory_segment_id = s.id
GROUP BY s.device_id, s.kind
ORDER BY s.device_id, bytes DESC, s.kind;
