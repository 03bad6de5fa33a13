-- title: Kernels of some steps of each stage
-- unit: ns
-- At most 128 steps of a stage, evenly chosen; not those in which the program warms up, where there are others. Launches of graphs that were not recorded node by node are expanded with the
-- shares of their nodes. steps: of the stage; read: of these, chosen.
WITH numbered AS (
  SELECT id, stage, row_number() OVER alike - 1 AS place, count(*) OVER (PARTITION BY stage) AS steps
  FROM step WHERE stage NOT IN ('load', 'warm-up')
  WINDOW alike AS (PARTITION BY stage, warm_up ORDER BY begin_ns)
  QUALIFY NOT warm_up OR bool_and(warm_up) OVER (PARTITION BY stage)),
chosen AS (
  SELECT id, stage, steps, count(*) OVER (PARTITION BY stage) AS read
  FROM numbered WHERE place % CAST(ceil(steps / 128.0) AS BIGINT) = 0),
executed AS (
  SELECT a.step_id, k.device_id, k.stream, k.begin_ns, k.end_ns, k.name, a.op, a.gemm_id, 0 AS estimated
  FROM kernel AS k JOIN attribution AS a ON a.kernel_id = k.id
  WHERE a.step_id IN (SELECT id FROM chosen)
  UNION ALL
  SELECT p.step_id, l.device_id, l.stream,
    l.begin_ns + CAST(round(s.begin_share * (l.end_ns - l.begin_ns)) AS BIGINT),
    l.begin_ns + CAST(round(s.end_share * (l.end_ns - l.begin_ns)) AS BIGINT), n.name, np.op, np.gemm_id, 1
  FROM launch_place AS p
  JOIN graph_launch AS l ON l.id = p.graph_launch_id
  JOIN graph_node AS n ON n.graph = l.graph
  JOIN node_share AS s ON s.graph_node_id = n.id
  LEFT JOIN node_place AS np ON np.graph_node_id = n.id
  WHERE p.step_id IN (SELECT id FROM chosen) AND NOT coalesce(l.nodes_recorded, false)
    AND (n.kind IS NULL OR n.kind = 'kernel'))
SELECT c.stage, e.step_id, e.device_id, coalesce(e.stream, 0) AS stream, e.begin_ns, e.end_ns, e.name, e.op,
  CAST(e.gemm_id IS NOT NULL AS BIGINT) AS product, CAST(e.estimated AS BIGINT) AS estimated, c.steps, c.read
FROM executed AS e
JOIN chosen AS c ON c.id = e.step_id
JOIN device AS d ON d.id = e.device_id
WHERE d.kind = 'gpu';
