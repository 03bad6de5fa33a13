-- title: What was recorded
-- unit: counts, ns
-- wall_ns runs from the first to the last event; the begin and end of a process are events too.
-- attributed_kernel_ns: kernels that belong to a step.
WITH event AS (
  SELECT min(begin_ns) AS first_ns, max(end_ns) AS last_ns FROM kernel
  UNION ALL SELECT min(begin_ns), max(end_ns) FROM range
  UNION ALL SELECT min(begin_ns), max(coalesce(end_ns, begin_ns)) FROM process)
SELECT
  (SELECT count(*) FROM process) AS processes,
  (SELECT count(*) FROM process WHERE injected) AS injected,
  (SELECT count(*) FROM thread) AS threads,
  (SELECT count(*) FROM kernel) AS kernels,
  (SELECT count(*) FROM range) AS ranges,
  (SELECT count(*) FROM gemm) AS gemms,
  (SELECT coalesce(max(last_ns) - min(first_ns), 0) FROM event) AS wall_ns,
  (SELECT coalesce(sum(end_ns - begin_ns), 0)::BIGINT FROM kernel) AS kernel_ns,
  (SELECT coalesce(sum(kernel_ns), 0)::BIGINT FROM step) AS attributed_kernel_ns,
  (SELECT count(*) FROM loss WHERE severity = 'data_loss') AS data_losses;
