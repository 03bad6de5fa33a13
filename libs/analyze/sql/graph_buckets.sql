-- title: Sizes of graphs and of the steps they were launched for
-- unit: tokens, ns
-- captured_rows: rows of most matrix products that were captured; rows: batch x tokens of the step. Steps that launch several
-- graphs are left out: pieces of a step may have any size.
WITH products AS (
  SELECT n.graph, CASE WHEN g.layout = 'column' OR (g.layout IS NULL AND contains(g.library, 'cublas')) THEN g.n ELSE g.m END AS rows
  FROM graph_node AS n JOIN node_place AS p ON p.graph_node_id = n.id JOIN gemm AS g ON g.id = p.gemm_id
  WHERE p.gemm_call),
sizes AS (SELECT graph, rows, count(*) AS products FROM products GROUP BY ALL),
captured AS (SELECT graph, arg_max(rows, products) AS rows FROM sizes GROUP BY graph),
alone AS (SELECT step_id FROM launch_place WHERE step_id IS NOT NULL GROUP BY step_id HAVING count(*) = 1)
SELECT s.stage, c.rows AS captured_rows, s.batch * s.tokens AS rows, count(*) AS launches,
  CAST(sum(l.end_ns - l.begin_ns) AS BIGINT) AS time_ns, quantile_disc(l.end_ns - l.begin_ns, 0.5) AS median_ns
FROM graph_launch AS l
JOIN launch_place AS p ON p.graph_launch_id = l.id
JOIN alone AS a ON a.step_id = p.step_id
JOIN step AS s ON s.id = p.step_id
JOIN captured AS c ON c.graph = l.graph
WHERE s.batch IS NOT NULL AND s.tokens IS NOT NULL AND s.stage NOT IN ('load', 'warm-up')
GROUP BY ALL ORDER BY ALL;
