-- title: Device memory that was allocated and freed
-- unit: ns, bytes
-- Without pinned memory, which is the host's, and without what an allocator holds but has not given out. Where a
-- snapshot tells of tensors, a trace's rows of the same (pool) are left out.
SELECT device_id, process_id, begin_ns, end_ns, bytes
FROM allocation
WHERE device_id IS NOT NULL AND kind IS DISTINCT FROM 'pinned' AND kind IS DISTINCT FROM 'segment'
  AND (kind IS DISTINCT FROM 'pool'
    OR device_id NOT IN (SELECT device_id FROM allocation WHERE kind = 'tensor' AND device_id IS NOT NULL))
ORDER BY begin_ns;
