-- title: How long a launch of each graph takes that is not recorded node by node
-- unit: ns
-- Medians.
SELECT graph, quantile_disc(end_ns - begin_ns, 0.5) AS typical_ns
FROM graph_launch
WHERE NOT coalesce(nodes_recorded, false)
GROUP BY graph
ORDER BY graph;
