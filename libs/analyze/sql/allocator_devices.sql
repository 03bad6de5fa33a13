-- title: Devices whose memory a framework's allocator was seen to manage
-- unit: -
-- Those with a snapshot, or with allocations that have a stack. Of a process that a snapshot tells of, the snapshot's
-- rows (tensor) count, not those that a trace has of the same allocations (pool).
SELECT d.id, d.name, d.ordinal,
  (SELECT count(*) FROM allocation AS a WHERE a.device_id = d.id AND a.kind = 'tensor'
     OR a.device_id = d.id AND a.kind = 'pool'
       AND NOT EXISTS (SELECT 1 FROM allocation AS t WHERE t.device_id = d.id AND t.kind = 'tensor')) AS allocations
FROM device AS d
WHERE d.id IN (SELECT device_id FROM memory_segment)
  OR d.id IN (SELECT device_id FROM allocation WHERE kind = 'tensor')
  OR d.id IN (SELECT device_id FROM allocation WHERE kind = 'pool' AND stack_id IS NOT NULL)
ORDER BY d.id;
