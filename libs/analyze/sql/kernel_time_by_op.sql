-- title: Kernel time by operator
-- unit: ns
-- Durations of the kernels attributed to each operator, added up, and how many there were. estimated_ns: of that, in graph
-- launches that were not recorded node by node.
SELECT stage, op, sum(executions)::BIGINT AS kernels, sum(time_ns)::BIGINT AS kernel_ns,
  coalesce(sum(time_ns) FILTER (source = 'estimated'), 0)::BIGINT AS estimated_ns
FROM work_sum
GROUP BY stage, op
ORDER BY kernel_ns DESC, stage, op;
