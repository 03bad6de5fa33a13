-- title: Kernels of launched graphs in the order of their capture
-- unit: ids
-- For graphs none of whose launches were recorded node by node: their time is divided by the same kernels outside graphs.
SELECT n.graph, l.process_id, n.id, n.name
FROM graph_node AS n
JOIN (SELECT g.graph, any_value(t.process_id) AS process_id
      FROM graph_launch AS g JOIN thread AS t ON t.id = g.thread_id
      GROUP BY g.graph) AS l ON l.graph = n.graph
WHERE n.kind IS NULL OR n.kind = 'kernel'
ORDER BY n.graph, n.captured_ns, n.id;
