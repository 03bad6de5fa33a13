-- title: Kernels that the host launched one by one in each stage
-- unit: ns
-- call_ns: host time inside the launching calls, where it is known. Kernels of graph launches do not count.
SELECT stage, sum(launches)::BIGINT AS launches, sum(timed_launches)::BIGINT AS timed, sum(launch_ns)::BIGINT AS call_ns
FROM kernel_sum
WHERE in_step AND launches > 0
GROUP BY stage
ORDER BY stage;
