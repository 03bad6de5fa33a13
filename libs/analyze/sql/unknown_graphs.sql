-- title: Graph launches whose kernels are unknown
-- unit: counts, ns
-- One row: launches that were not recorded node by node, of graphs whose time could not be divided among their nodes. kernels:
-- nodes of these graphs that are kernels or may be; unseen: graphs of which no node was seen when they were made.
WITH launched AS (
  SELECT graph, count(*) AS launches, sum(end_ns - begin_ns) AS ns
  FROM graph_launch
  WHERE NOT nodes_recorded AND graph NOT IN (
    SELECT n.graph FROM node_share AS s JOIN graph_node AS n ON n.id = s.graph_node_id)
  GROUP BY graph),
node AS (
  SELECT graph, count(*) AS nodes,
    count(*) FILTER (coalesce(kind, 'unknown') IN ('kernel', 'unknown') AND (captured_node IS NOT NULL OR name IS NOT NULL)) AS kernels,
    count(name) AS named
  FROM graph_node
  GROUP BY graph)
SELECT count(*) AS graphs, coalesce(sum(l.launches), 0)::BIGINT AS launches, coalesce(sum(l.ns), 0)::BIGINT AS time_ns,
  coalesce(sum(n.kernels), 0)::BIGINT AS kernels, coalesce(sum(n.named), 0)::BIGINT AS named,
  count(*) FILTER (n.nodes IS NULL) AS unseen,
  (SELECT count(*) FROM graph_launch WHERE nodes_recorded) AS launches_by_node
FROM launched AS l LEFT JOIN node AS n USING (graph);
