-- title: Devices and how much they executed
-- unit: bytes, ns
-- The busiest first: its peaks, and those of others of its kind that executed something, are the denominators of the report.
WITH work AS (
  SELECT device_id, end_ns - begin_ns AS ns FROM kernel
  UNION ALL
  SELECT device_id, end_ns - begin_ns AS ns FROM graph_launch WHERE NOT coalesce(nodes_recorded, false)),
worked AS (SELECT device_id, sum(ns) AS ns FROM work GROUP BY device_id)
SELECT d.id, d.kind, d.name, d.chip, d.driver, d.uuid, d.units, d.memory_bytes, d.cache_bytes,
  coalesce(w.ns, 0)::BIGINT AS kernel_ns
FROM device AS d LEFT JOIN worked AS w ON w.device_id = d.id
ORDER BY kernel_ns DESC, CASE d.kind WHEN 'cpu' THEN 0 ELSE 1 END, d.id;
