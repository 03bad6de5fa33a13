-- title: Time by module of the model
-- unit: ns
-- Of modules that ranges name: calls and total_ns count the ranges that stand for the module; self_ns also counts unnamed
-- ranges inside it, and excludes modules inside it; kernel_ns are the kernels launched directly in it. Of modules told from
-- shapes: calls are steps, and the time of one is from the begin of its first BLAS call to the end of its last. Of those told
-- from positions: calls are steps; what some kernels of a module were told by and others by shapes counts as shape. Launches of a
-- graph that holds kernels of the module are calls, too; they have no host time. estimated_ns: of kernel_ns, not measured.
WITH shaped AS MATERIALIZED (SELECT kernel_id, step_id, stage, module, op FROM attribution WHERE module_source = 'shape'),
placed AS (SELECT stage, module, op, count(DISTINCT step_id) AS steps FROM attribution WHERE module_source = 'position' GROUP BY ALL),
spans AS (
  SELECT a.stage, a.module, a.op, max(k.end_ns) - min(k.begin_ns) AS ns
  FROM kernel AS k JOIN shaped AS a ON k.id = a.kernel_id
  WHERE k.graph_node_id IS NULL AND k.id >= (SELECT min(kernel_id) FROM shaped)
  GROUP BY a.step_id, a.stage, a.module, a.op),
launched AS (
  SELECT p.stage, l.graph, count(*) AS launches
  FROM launch_place AS p JOIN graph_launch AS l ON l.id = p.graph_launch_id
  GROUP BY ALL),
held AS (
  SELECT DISTINCT n.graph, p.module, p.op, p.module_source
  FROM node_place AS p JOIN graph_node AS n ON n.id = p.graph_node_id
  WHERE p.module IS NOT NULL),
part AS (
  SELECT stage, module, op, 'range' AS source, CASE WHEN kind = 'module' THEN ranges ELSE 0 END AS calls,
    CASE WHEN kind = 'module' THEN total_ns ELSE 0 END AS total_ns, self_ns, 0 AS kernel_ns, 0 AS estimated_ns
  FROM range_sum
  WHERE module IS NOT NULL
  UNION ALL
  SELECT stage, module, op, 'shape', 1, ns, ns, 0, 0 FROM spans
  UNION ALL
  SELECT stage, module, op, 'position', steps, 0, 0, 0, 0 FROM placed
  UNION ALL
  SELECT l.stage, h.module, h.op, h.module_source, l.launches, 0, 0, 0, 0 FROM launched AS l JOIN held AS h ON h.graph = l.graph
  UNION ALL
  SELECT stage, module, op, module_source, 0, 0, 0, time_ns, CASE WHEN source = 'estimated' THEN time_ns ELSE 0 END
  FROM work_sum
  WHERE module IS NOT NULL)
SELECT stage, module, any_value(op) AS op, max(source) AS source,
  (CASE WHEN bool_or(source = 'shape') THEN sum(calls) FILTER (source = 'shape') ELSE sum(calls) END)::BIGINT AS calls,
  sum(total_ns)::BIGINT AS total_ns, sum(self_ns)::BIGINT AS self_ns, sum(kernel_ns)::BIGINT AS kernel_ns,
  sum(estimated_ns)::BIGINT AS estimated_ns
FROM part
GROUP BY stage, module, source = 'range'
ORDER BY self_ns DESC, kernel_ns DESC, stage, module;
