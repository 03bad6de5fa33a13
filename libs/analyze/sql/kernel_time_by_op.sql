-- title: Kernel time by operator
-- unit: ns
-- Durations of the kernels attributed to each operator, added up, and how many there were.
SELECT a.stage, a.op, count(*) AS kernels, sum(k.end_ns - k.begin_ns)::BIGINT AS kernel_ns
FROM attribution AS a JOIN kernel AS k ON k.id = a.kernel_id
GROUP BY a.stage, a.op
ORDER BY kernel_ns DESC, a.stage, a.op;
