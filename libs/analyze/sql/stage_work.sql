-- title: What devices executed for each stage, and how much of it is estimated
-- unit: ns
-- Of the stage's steps. launches: of graphs, by_node of them recorded node by node.
WITH done AS (
  SELECT stage, sum(time_ns)::BIGINT AS kernel_ns,
    coalesce(sum(time_ns) FILTER (source = 'estimated'), 0)::BIGINT AS estimated_ns
  FROM work_sum
  WHERE in_step
  GROUP BY stage),
launched AS (
  SELECT p.stage, count(*) AS launches, count(*) FILTER (l.nodes_recorded) AS by_node
  FROM launch_place AS p JOIN graph_launch AS l ON l.id = p.graph_launch_id
  WHERE p.step_id IS NOT NULL
  GROUP BY p.stage)
SELECT d.stage, d.kernel_ns, d.estimated_ns, coalesce(l.launches, 0) AS launches, coalesce(l.by_node, 0) AS by_node
FROM done AS d LEFT JOIN launched AS l ON l.stage = d.stage
ORDER BY d.stage;
