-- title: Samples of the points of a benchmark
-- unit: ns
-- One row per sample, in the order in which they were taken.
SELECT bench_id, time_ns FROM bench_sample ORDER BY bench_id, number;
