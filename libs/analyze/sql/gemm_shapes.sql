-- title: Matrix products by shape
-- unit: ns
-- One row per stage, function, types, shape and epilogue, the costliest first. time_ns: of the kernels that the calls launched,
-- estimated_ns of that in graph launches that were not recorded node by node. ops are the operators that called, by time. The
-- stage is NULL for calls outside any step. Calls of a CPU library without a kernel count with their own time; those of a GPU
-- library, whose kernels were not seen, with none; those that were only captured into a graph do not count. shared_ns of
-- time_ns is a part of the time of grouped calls, whose groups are computed by one kernel: shared by FLOPs.
WITH launched AS (
  SELECT gemm_id FROM graph_node WHERE gemm_id IS NOT NULL UNION ALL SELECT gemm_id FROM kernel WHERE gemm_id IS NOT NULL),
called AS (
  SELECT CASE WHEN w.in_step THEN w.stage END AS stage, w.op, w.gemm_id, w.gemm_calls AS calls, w.time_ns,
    CASE WHEN w.source = 'estimated' THEN w.time_ns ELSE 0 END AS estimated_ns,
    CASE WHEN w.shared THEN w.time_ns ELSE 0 END AS shared_ns
  FROM work_product AS w
  UNION ALL
  SELECT NULL, NULL, id, 1, CASE WHEN contains(lower(library), 'cublas') THEN 0 ELSE end_ns - begin_ns END, 0, 0
  FROM gemm
  WHERE kernel_id IS NULL AND id NOT IN (SELECT gemm_id FROM launched)
    AND id NOT IN (SELECT p.gemm_id FROM gemm_group AS p JOIN gemm_group AS named USING (call_id)
                   WHERE named.gemm_id IN (SELECT gemm_id FROM launched))),
used AS (
  SELECT c.stage, c.op, g.library, g.function, g.type_a AS type, g.compute_type, g.m, g.n, g.k, g.batch, g.epilogue,
    string_agg(DISTINCT g.algorithm, ', ' ORDER BY g.algorithm) AS algorithms, sum(c.calls)::BIGINT AS calls,
    sum(c.time_ns)::BIGINT AS time_ns, sum(c.estimated_ns)::BIGINT AS estimated_ns, sum(c.shared_ns)::BIGINT AS shared_ns
  FROM called AS c JOIN gemm AS g ON g.id = c.gemm_id
  GROUP BY ALL)
SELECT stage, library, function, type, compute_type, m, n, k, batch, epilogue, sum(calls)::BIGINT AS calls,
  sum(time_ns)::BIGINT AS time_ns, sum(estimated_ns)::BIGINT AS estimated_ns,
  sum(shared_ns)::BIGINT AS shared_ns, string_agg(op, ', ' ORDER BY used.time_ns DESC, op) AS ops, max(algorithms) AS algorithms
FROM used
GROUP BY stage, library, function, type, compute_type, m, n, k, batch, epilogue
ORDER BY time_ns DESC, stage, function, m, n, k, epilogue, library;
