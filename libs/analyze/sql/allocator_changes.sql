-- title: Memory that an allocator gave to the program, and that it held
-- unit: ns, bytes
-- held: taken from the device. Else given to the program; a snapshot's rows (tensor) count before a trace's (pool).
SELECT a.device_id, CASE WHEN a.kind = 'segment' THEN 1 ELSE 0 END AS held, a.begin_ns, a.end_ns, a.bytes
FROM allocation AS a
WHERE a.device_id IS NOT NULL AND (a.kind IN ('tensor', 'segment') OR a.kind = 'pool'
  AND a.device_id NOT IN (SELECT device_id FROM allocation WHERE kind = 'tensor' AND device_id IS NOT NULL))
ORDER BY a.begin_ns;
