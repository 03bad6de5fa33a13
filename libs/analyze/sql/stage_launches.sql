-- title: Kernels that the host launched one by one in each stage
-- unit: ns
-- call_ns: host time inside the launching calls, where it is known. Kernels of graph launches do not count.
SELECT a.stage, count(*) AS launches, count(k.launch_end_ns) AS timed,
  coalesce(sum(k.launch_end_ns - k.launch_begin_ns), 0)::BIGINT AS call_ns
FROM kernel AS k JOIN attribution AS a ON a.kernel_id = k.id
WHERE k.stream IS NOT NULL AND k.graph_launch_id IS NULL AND a.step_id IS NOT NULL
GROUP BY a.stage
ORDER BY a.stage;
