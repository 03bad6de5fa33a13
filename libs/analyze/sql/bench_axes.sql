-- title: Sizes of the points of a benchmark
-- unit: values
-- One row per point and axis, in the order of the operator's axes.
SELECT bench_id, axis, value FROM bench_axis ORDER BY bench_id, place;
