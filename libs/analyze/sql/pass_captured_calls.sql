-- title: BLAS calls in graphs, for the matching pass
-- unit: ns
-- Calls that were captured into a graph which was launched, once for each such graph: calls of a graph are matched together.
SELECT g.id, n.graph AS thread_id, g.begin_ns, g.end_ns, g.m, g.n, g.k, g.batch, g.layout,
  CAST(g.transpose_a <> 'n' AS BIGINT) + 2 * CAST(g.transpose_b <> 'n' AS BIGINT) AS transposed
FROM (SELECT DISTINCT graph, gemm_id FROM graph_node WHERE gemm_id IS NOT NULL) AS n
JOIN gemm AS g ON g.id = n.gemm_id
WHERE n.graph IN (SELECT graph FROM graph_launch)
ORDER BY n.graph, g.begin_ns, g.id;
