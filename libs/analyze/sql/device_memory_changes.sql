-- title: Device memory that was allocated and freed
-- unit: ns, bytes
-- Without pinned memory, which is the host's.
SELECT device_id, process_id, begin_ns, end_ns, bytes
FROM allocation
WHERE device_id IS NOT NULL AND kind IS DISTINCT FROM 'pinned'
ORDER BY begin_ns;
