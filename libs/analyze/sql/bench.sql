-- question: bench_axes
-- Sizes of the points of a benchmark.
-- One row per point and axis, in the order of the operator's axes.
SELECT bench_id, axis, value FROM bench_axis ORDER BY bench_id, place;

-- question: bench_points
-- Points of a benchmark.
-- One row per point in the order of the sweep, with the rates that its median time gives.
SELECT b.* EXCLUDE (device_id), d.name AS device,
  CASE WHEN status = 'measured' AND median_ns > 0 AND flops > 0 THEN flops / median_ns * 1e9 END AS flops_per_s,
  CASE WHEN status = 'measured' AND median_ns > 0 THEN (read_bytes + write_bytes) / median_ns * 1e9 END AS bytes_per_s,
  CASE WHEN status = 'measured' AND median_ns > 0 THEN floor_ns / median_ns END AS of_roof
FROM bench AS b LEFT JOIN device AS d ON d.id = b.device_id
ORDER BY b.id;

-- question: bench_samples
-- Samples of the points of a benchmark.
-- One row per sample, in the order in which they were taken.
SELECT bench_id, time_ns FROM bench_sample ORDER BY bench_id, number;
