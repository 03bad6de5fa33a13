-- title: What the modules of the model must cost
-- unit: FLOP, bytes
-- A module costs what the operators below its path cost, once for every step in which it was called. Modules that the model
-- analysis does not know have no row; neither have modules with a call in a step of unknown size.
WITH launched AS (
  SELECT p.stage, l.graph, s.pass_id, count(DISTINCT p.step_id) AS steps
  FROM launch_place AS p JOIN graph_launch AS l ON l.id = p.graph_launch_id JOIN step AS s ON s.id = p.step_id
  GROUP BY ALL),
held AS (
  SELECT DISTINCT n.graph, p.module
  FROM node_place AS p JOIN graph_node AS n ON n.id = p.graph_node_id
  WHERE p.module IS NOT NULL),
called AS (
  SELECT stage, module, pass_id, sum(steps)::BIGINT AS steps
  FROM range_sum
  WHERE kind = 'module'
  GROUP BY stage, module, pass_id
  UNION ALL
  SELECT a.stage, a.module, s.pass_id, count(DISTINCT a.step_id) AS steps
  FROM attribution AS a JOIN step AS s ON s.id = a.step_id
  WHERE a.module_source IN ('shape', 'position') AND a.kernel_id NOT IN (SELECT id FROM kernel WHERE graph_node_id IS NOT NULL)
  GROUP BY a.stage, a.module, s.pass_id
  UNION ALL
  SELECT l.stage, h.module, l.pass_id, l.steps
  FROM launched AS l JOIN held AS h ON h.graph = l.graph),
part AS (
  SELECT c.module, o.module AS operator
  FROM (SELECT DISTINCT module FROM called) AS c
  JOIN (SELECT DISTINCT module FROM model_op) AS o ON o.module = c.module OR starts_with(o.module, c.module || '.'))
SELECT c.stage, c.module, sum(c.steps * m.flops) AS flops,
  sum(c.steps * (m.weight_bytes + m.kv_bytes + m.activation_bytes)) AS bytes,
  CASE WHEN count(m.compute_ns) = count(*) THEN sum(c.steps * m.compute_ns) END AS compute_ns
FROM called AS c
JOIN part AS p ON p.module = c.module
LEFT JOIN model_op AS m ON m.pass_id = c.pass_id AND m.module = p.operator
GROUP BY c.stage, c.module
HAVING bool_and(m.pass_id IS NOT NULL)
ORDER BY c.stage, c.module;
