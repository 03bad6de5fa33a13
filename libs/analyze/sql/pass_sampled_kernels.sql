-- title: Kernels of graph launches that were recorded node by node, in the order they ran
-- unit: ns
-- One million at most: a few launches of each graph are.
SELECT t.process_id, k.name, k.end_ns - k.begin_ns AS duration_ns
FROM kernel AS k JOIN graph_launch AS g ON g.id = k.graph_launch_id JOIN thread AS t ON t.id = g.thread_id
ORDER BY g.begin_ns, g.id, k.begin_ns, k.id
LIMIT 1000000;
