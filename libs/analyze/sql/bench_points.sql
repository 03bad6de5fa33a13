-- title: Points of a benchmark
-- unit: ns
-- One row per point in the order of the sweep, with the rates that its median time gives.
SELECT b.* EXCLUDE (device_id), d.name AS device,
  CASE WHEN status = 'measured' AND median_ns > 0 AND flops > 0 THEN flops / median_ns * 1e9 END AS flops_per_s,
  CASE WHEN status = 'measured' AND median_ns > 0 THEN (read_bytes + write_bytes) / median_ns * 1e9 END AS bytes_per_s,
  CASE WHEN status = 'measured' AND median_ns > 0 THEN floor_ns / median_ns END AS of_roof
FROM bench AS b LEFT JOIN device AS d ON d.id = b.device_id
ORDER BY b.id;
