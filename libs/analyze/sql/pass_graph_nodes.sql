-- title: Nodes of graphs for the attribution passes
-- unit: ids
-- kind: 0 a kernel, 1 a copy or fill, 2 anything else.
SELECT id, graph, captured_node, captured_ns, thread_id, gemm_id,
  CASE WHEN kind IS NULL OR kind = 'kernel' THEN 0 WHEN kind IN ('memcpy', 'memset') THEN 1 ELSE 2 END AS kind, name
FROM graph_node
ORDER BY id;
