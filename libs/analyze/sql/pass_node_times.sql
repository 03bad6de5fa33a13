-- title: When the nodes of a graph execute, after the begin of their launch
-- unit: ns
-- Medians over the launches that were recorded node by node, 64 of each graph at most. A node that a launch executes several
-- times counts as one of their durations together.
WITH recorded AS (
  SELECT id, graph, begin_ns
  FROM (SELECT *, row_number() OVER (PARTITION BY graph ORDER BY begin_ns) AS place FROM graph_launch WHERE nodes_recorded)
  WHERE place <= 64),
part AS (
  SELECT graph_launch_id, graph_node_id, begin_ns, end_ns FROM kernel WHERE graph_node_id IS NOT NULL
  UNION ALL
  SELECT graph_launch_id, graph_node_id, begin_ns, end_ns FROM copy WHERE graph_node_id IS NOT NULL),
executed AS (
  SELECT r.graph, p.graph_node_id, min(p.begin_ns) - any_value(r.begin_ns) AS begin_ns,
    sum(p.end_ns - p.begin_ns)::BIGINT AS ns
  FROM recorded AS r JOIN part AS p ON p.graph_launch_id = r.id
  GROUP BY r.id, r.graph, p.graph_node_id)
SELECT graph_node_id, graph, quantile_disc(begin_ns, 0.5) AS begin_ns, quantile_disc(begin_ns + ns, 0.5) AS end_ns,
  count(*) AS samples
FROM executed
GROUP BY graph_node_id, graph
ORDER BY graph, begin_ns, graph_node_id;
