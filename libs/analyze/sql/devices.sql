-- title: Devices and how much they executed
-- unit: bytes, ns
-- The busiest first: its peaks are the denominators of the report.
SELECT d.id, d.kind, d.name, d.chip, d.driver, d.units, d.memory_bytes, d.cache_bytes,
  coalesce(k.kernel_ns, 0)::BIGINT AS kernel_ns
FROM device AS d
LEFT JOIN (SELECT device_id, sum(end_ns - begin_ns) AS kernel_ns FROM kernel GROUP BY device_id) AS k ON k.device_id = d.id
ORDER BY kernel_ns DESC, CASE d.kind WHEN 'cpu' THEN 0 ELSE 1 END, d.id;
