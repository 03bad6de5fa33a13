-- title: Kernels by time
-- unit: ns
-- One row per name and stage, the costliest first; ops are the operators they belong to, by time. estimated_ns: of time_ns, in
-- graph launches that were not recorded node by node. flops: of the BLAS calls that the kernel stands for. The stage is NULL
-- outside any step. Kernels of devices that are no CPU.
WITH used AS (
  SELECT w.name, CASE WHEN w.in_step THEN w.stage END AS stage, w.op, sum(w.executions)::BIGINT AS executions,
    sum(w.time_ns)::BIGINT AS time_ns, coalesce(sum(w.time_ns) FILTER (w.source = 'estimated'), 0)::BIGINT AS estimated_ns,
    sum(coalesce(p.call_flops, 2.0 * g.m * g.n * g.k * g.batch) * w.gemm_calls) AS flops
  FROM work_sum AS w LEFT JOIN gemm AS g ON g.id = w.gemm_id
  LEFT JOIN gemm_group AS p ON p.gemm_id = w.gemm_id
  WHERE w.device_id IN (SELECT id FROM device WHERE kind <> 'cpu')
  GROUP BY ALL)
SELECT name, stage, sum(executions)::BIGINT AS executions, sum(time_ns)::BIGINT AS time_ns,
  sum(estimated_ns)::BIGINT AS estimated_ns, sum(flops) AS flops,
  string_agg(op, ', ' ORDER BY used.time_ns DESC, op) AS ops
FROM used
GROUP BY name, stage
ORDER BY time_ns DESC, name, stage;
